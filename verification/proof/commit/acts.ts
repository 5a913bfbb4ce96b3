import { randomUUID } from 'node:crypto'
import type express from 'express'
import type { IdempotencyContext } from 'once-per-key'
import type { Dialect, Pool, TransactionStore, Tx } from './dialect.js'
import { ACT, type Act } from './order.js'

/**
 * Does what a request of a scene asks for. Whoever is told that the outcome is unknown looks for the effect first, and answers with
 * that.
 */
export function createActor(
  { query }: Dialect,
  application: Pool,
  storeOf: (req: express.Request) => TransactionStore,
) {
  /** Read outside of any transaction, as a balance often is. */
  async function findSeen({ key }: IdempotencyContext): Promise<string | null> {
    const [row] = await query(application, 'SELECT id AS seen FROM effects WHERE name = ?', [key])
    return row?.seen ?? null
  }

  async function write(on: Pool | Tx, { key, attempt }: IdempotencyContext): Promise<string> {
    const id = randomUUID()
    await query(on, 'INSERT INTO effects (name, id, attempt) VALUES (?, ?, ?)', [key, id, attempt])
    return id
  }

  return async (req: express.Request, res: express.Response): Promise<void> => {
    const run = req.idempotency as IdempotencyContext
    const answer = (id: string) => void res.status(201).json({ id })

    const act = req.get(ACT) as Act
    if (act === 'declines' || (act === 'reads before' && (await findSeen(run)) !== null)) {
      return void res.status(402).json({ code: 'declined' })
    }
    if (act === 'acts outside' || act === 'acts outside and breaks') {
      const id = await write(application, run)
      return act === 'acts outside' ? answer(id) : void res.status(500).end()
    }
    const found = run.previousOutcome === 'unknown' ? await findSeen(run) : null
    const work = async (tx: Tx) => {
      if (act === 'commits itself') {
        await query(tx, 'COMMIT')
        await query(tx, 'BEGIN')
      }
      if (act === 'writes nothing') return answer('nothing')
      if (found === null) return answer(await write(tx, run))
      await query(tx, 'UPDATE effects SET attempt = ? WHERE name = ?', [run.attempt, run.key])
      answer(found)
    }
    await storeOf(req).transaction(
      run,
      work,
      req.body.isolation === null ? undefined : { isolation: req.body.isolation },
    )
  }
}
