import type { Store } from 'once-per-key/core'
import { RefusedError, runner } from 'once-per-key/run'

/** What a consumer needs of a queue with a visibility time-out: of SQS, three commands. */
export interface Queue {
  receive(): Promise<readonly { readonly MessageId: string; readonly Body: string; readonly ReceiptHandle: string }[]>
  delete(receiptHandle: string): Promise<void>
  changeVisibility(receiptHandle: string, seconds: number): Promise<void>
}

export interface Order {
  readonly merchant: string
  /** Made by the sender, once for each order: a message that is sent twice has two ids. */
  readonly orderId: string
}

/** Takes what the queue has. A message that comes back, since its visibility ran out, does not ship its order again. */
export function orderConsumer(
  store: Store,
  queue: Queue,
  ship: (order: Order) => Promise<{ readonly parcel: string }>,
) {
  const once = runner({ store, name: 'orders' })

  return async function poll(): Promise<void> {
    for (const { Body, ReceiptHandle } of await queue.receive()) {
      const order: Order = JSON.parse(Body)
      try {
        await once({ scope: order.merchant, key: order.orderId, input: order }, () => ship(order))
        await queue.delete(ReceiptHandle)
      } catch (error) {
        // Not deleted: it comes back, and goes to the dead-letter queue where it comes back too often.
        const { retryAfterMs = null } = error instanceof RefusedError ? error : {}
        if (retryAfterMs !== null) await queue.changeVisibility(ReceiptHandle, Math.ceil(retryAfterMs / 1_000))
      }
    }
  }
}
