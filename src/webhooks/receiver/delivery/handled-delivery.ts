import { Buffer } from 'node:buffer'
import type { Answer } from '../../../core/index.js'
import type { HeldAnswer, RequestRun } from '../../../http/index.js'

/** "200 OK"; the document shows no body. */
export const ACKNOWLEDGED: Answer = { status: 200, statusMessage: '', headers: [], body: Buffer.alloc(0) }

/** The answer inside a handler's transaction: the event counts as acknowledged once the transaction's work resolves. */
export class HandledDelivery implements HeldAnswer {
  isAcknowledged = false
  readonly #run: RequestRun

  constructor(run: RequestRun) {
    this.#run = run
  }

  entered(): void {}

  reset(): void {
    this.isAcknowledged = false
  }

  resolved(): void {
    this.isAcknowledged = true
    void this.#run.settle(ACKNOWLEDGED)
  }

  /** That the handler resolves is the answer. */
  leftBehind(): boolean {
    return true
  }

  left(): void {}
}
