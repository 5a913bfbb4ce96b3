import type { Buffer } from 'node:buffer'
import { whenever } from '../core/index.js'
import type { RequestRun, Settled } from '../http/index.js'
import type { Head } from './head.js'
import type { HeldStream } from './held-stream.js'
import type { WayOut } from './way-out.js'

/** Ends a run with a whole answer, then sends the result; synchronously if the store is. */
export function settleWhole(run: RequestRun, wayOut: WayOut, head: Head, body: Buffer, isKept: boolean): void {
  const { status, statusMessage, headers } = head
  const settled = run.settle({ status, statusMessage, headers, body: isKept ? body : null })
  if (settled instanceof Promise) void sendLater(settled, wayOut, head, body)
  else wayOut.send(settled, head, body, undefined)
}

async function sendLater(settled: Promise<Settled>, wayOut: WayOut, head: Head, body: Buffer): Promise<void> {
  wayOut.send(await settled, head, body, undefined)
}

/**
 * The same for a stream: its end is sent only if the record was completed, or if the run has no record
 * (`runUnprotected`).
 */
export function settleStream(run: RequestRun, wayOut: WayOut, head: Head, last: Buffer, stream: HeldStream): void {
  const terms = run.context.attempt === 0 ? undefined : { confirmed: true }
  void whenever(run.settle({ ...head, body: null }, terms), (settled) => {
    if (settled.action === 'send') wayOut.send(settled, head, last, stream)
    else wayOut.cut(undefined, stream)
  })
}
