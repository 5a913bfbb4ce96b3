import type { Store } from 'once-per-key/core'
import { RefusedError, runner } from 'once-per-key/run'

/** What KafkaJS gives to `eachMessage`, as far as it is used here. */
export interface EachMessage {
  readonly topic: string
  readonly partition: number
  readonly message: { readonly offset: string; readonly value: Buffer | null }
}

export interface Transfer {
  readonly account: string
  readonly transferId: string
  readonly cents: number
}

/**
 * For `consumer.run({ eachMessage })`. A consumer that dies, or whose partition moves to another, has its last messages read
 * again: none is booked twice. Where it throws, KafkaJS reads the message again after a pause.
 */
export function bookTransfers(store: Store, book: (transfer: Transfer) => Promise<void>) {
  const once = runner({ store, name: 'transfers', inFlightWaitMs: 30_000 })

  return async function eachMessage({ message }: EachMessage): Promise<void> {
    const transfer: Transfer = JSON.parse(String(message.value))
    try {
      await once({ scope: transfer.account, key: transfer.transferId, input: transfer }, () => book(transfer))
    } catch (error) {
      // Another transfer under a used id never becomes right: to throw would stop the partition. Tell somebody.
      if (error instanceof RefusedError && error.code === 'mismatched') console.error(error)
      else throw error
    }
  }
}
