import type { ServerResponse } from 'node:http'
import { transactionStreamed } from '../core/index.js'
import * as faked from './faked.js'
import { EarlierHead } from './headers.js'
import type { Callback } from './node-errors.js'

/** The state of a response when the handler's transaction was opened: what is written afterwards may be discarded. */
export class ResponseEntry {
  /** More was written than can be kept, or it must be sent before its end. Those bytes are dropped. */
  isStreamed = false
  readonly #res: ServerResponse
  readonly #head: EarlierHead

  constructor(res: ServerResponse) {
    this.#res = res
    this.#head = new EarlierHead(res)
  }

  restore(): void {
    this.isStreamed = false
    faked.notBegun(this.#res)
    this.#head.restore()
  }

  /** Nothing may be sent before the COMMIT: the transaction will be refused. */
  drop(done: Callback | undefined): boolean {
    this.isStreamed = true
    if (done !== undefined) process.nextTick(done)
    return true
  }

  /** @throws IdempotencyError `transaction_streamed` */
  refuseStream(): void {
    if (this.isStreamed) throw transactionStreamed()
  }
}
