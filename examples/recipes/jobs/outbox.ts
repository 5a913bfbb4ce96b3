import type { PostgresStore } from 'once-per-key/postgres'
import { RefusedError, runner } from 'once-per-key/run'
import type { Pool } from 'pg'

/** Sends one message to whoever is to get it: an HTTP API, a queue. A key that it knows makes a repeat harmless there. */
export type Publish = (message: unknown, idempotencyKey: string) => Promise<void>

/**
 * Relays the rows of a table that other transactions have filled: `CREATE TABLE outbox (id bigserial PRIMARY KEY,
 * message jsonb, sent_at timestamptz)`. Each is published once, by however many relays, and is marked in the transaction that completes its
 * record. They are published in the order of their ids: a relay goes on to the next only behind one that is published, by whichever relay.
 */
export function outboxRelay(pool: Pool, store: PostgresStore<Pool>, publish: Publish) {
  const once = runner({ store, name: 'outbox' })

  return async function relay(): Promise<void> {
    const { rows } = await pool.query('SELECT id, message FROM outbox WHERE sent_at IS NULL ORDER BY id LIMIT 100')
    for (const { id, message } of rows) {
      try {
        await once({ scope: 'outbox', key: id, input: message }, async (context) => {
          await publish(message, context.deriveKey('publish'))
          await store.transaction(context, async (tx) => {
            await tx.query('UPDATE outbox SET sent_at = now() WHERE id = $1', [id])
          })
        })
      } catch (error) {
        if (error instanceof RefusedError && error.code === 'in_flight') return // Another relay is at it, and at what follows.
        throw error
      }
    }
  }
}
