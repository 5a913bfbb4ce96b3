import { randomUUID } from 'node:crypto'
import type express from 'express'
import type { IdempotencyContext } from 'once-per-key'
import type { PostgresStore } from 'once-per-key/postgres'
import type { Pool, PoolClient } from 'pg'
import { ACT, type Act } from './order.js'

/**
 * Does what a request of a scene asks for. Whoever is told that the outcome is unknown looks for the effect first, and answers with
 * that.
 */
export function actor(store: PostgresStore<Pool>, application: Pool) {
  return async (req: express.Request, res: express.Response): Promise<void> => {
    const run = req.idempotency as IdempotencyContext
    const isolation: 'repeatable read' | 'serializable' | null = req.body.isolation
    const transaction = (work: (tx: PoolClient) => Promise<void>) =>
      store.transaction(run, work, isolation === null ? undefined : { isolation })
    const answer = (id: string) => void res.status(201).json({ id })

    const act = req.get(ACT) as Act
    if (act === 'declines' || (act === 'reads before' && (await effectSeen(application, run)) !== null)) {
      return void res.status(402).json({ code: 'declined' })
    }
    if (act === 'acts outside' || act === 'acts outside and breaks') {
      const id = await write(application, run)
      return act === 'acts outside' ? answer(id) : void res.status(500).end()
    }
    const found = run.previousOutcome === 'unknown' ? await effectSeen(application, run) : null
    await transaction(async (tx) => {
      if (act === 'commits itself') {
        await tx.query('COMMIT')
        await tx.query('BEGIN')
      }
      if (found === null) return answer(await write(tx, run))
      await tx.query('UPDATE effects SET attempt = $2 WHERE key = $1', [run.key, run.attempt])
      answer(found)
    })
  }
}

/** Read outside of any transaction, as a balance often is. */
async function effectSeen(application: Pool, { key }: IdempotencyContext): Promise<string | null> {
  const { rows } = await application.query('SELECT id AS seen FROM effects WHERE key = $1', [key])
  return rows[0]?.seen ?? null
}

async function write(on: Pool | PoolClient, { key, attempt }: IdempotencyContext): Promise<string> {
  const id = randomUUID()
  await on.query('INSERT INTO effects VALUES ($1, $2, $3, NULL)', [key, id, attempt])
  return id
}
