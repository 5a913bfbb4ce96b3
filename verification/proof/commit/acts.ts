import type express from 'express'
import type { IdempotencyContext } from 'once-per-key'
import { ACT, type Act, type Order } from './order.js'

/** Effects in a database, each with its key, its id and its attempt. */
export interface Effects<Tx> {
  transaction(run: IdempotencyContext, work: (tx: Tx) => Promise<void>, isolation: Order['isolation']): Promise<unknown>
  /** Read outside of any transaction, as a balance often is: the id, with `AS seen` in the statement. */
  seen(run: IdempotencyContext): Promise<string | null>
  /** Writes one with a new id; `null`: outside of any transaction. */
  write(tx: Tx | null, run: IdempotencyContext): Promise<string>
  /** It is of this attempt now. */
  takeOver(tx: Tx, run: IdempotencyContext): Promise<unknown>
  /** COMMIT, and another transaction on its connection. */
  commit(tx: Tx): Promise<unknown>
}

/**
 * Does what a request of a scene asks for. Whoever is told that the outcome is unknown looks for the effect first, and answers with
 * that.
 */
export function actor<Tx>(effects: Effects<Tx>) {
  return async (req: express.Request, res: express.Response): Promise<void> => {
    const run = req.idempotency as IdempotencyContext
    const answer = (id: string) => void res.status(201).json({ id })

    const act = req.get(ACT) as Act
    if (act === 'declines' || (act === 'reads before' && (await effects.seen(run)) !== null)) {
      return void res.status(402).json({ code: 'declined' })
    }
    if (act === 'acts outside' || act === 'acts outside and breaks') {
      const id = await effects.write(null, run)
      return act === 'acts outside' ? answer(id) : void res.status(500).end()
    }
    const found = run.previousOutcome === 'unknown' ? await effects.seen(run) : null
    const work = async (tx: Tx) => {
      if (act === 'commits itself') await effects.commit(tx)
      if (act === 'writes nothing') return answer('nothing')
      if (found === null) return answer(await effects.write(tx, run))
      await effects.takeOver(tx, run)
      answer(found)
    }
    await effects.transaction(run, work, req.body.isolation)
  }
}
