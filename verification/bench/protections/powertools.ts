import type { Request } from 'express'
import { type Payout, sendPayout } from '../payout.js'
import { loadPeer } from '../peer-packages.js'
import { KEY, type Open } from '../protection.js'
import { openNodeRedis } from '../redis-commands.js'

interface Powertools {
  makeIdempotent(
    run: (about: About, req: Request) => Promise<Payout>,
    options: { persistenceStore: unknown; config: unknown; dataIndexArgument: number },
  ): (about: About, req: Request) => Promise<Payout>
  IdempotencyConfig: new (options: { eventKeyJmesPath: string }) => { registerLambdaContext(context: unknown): void }
}

/** What its records are found by, and what it hashes. */
interface About {
  readonly key: unknown
  readonly order: unknown
}

/**
 * Its cache layer, with node-redis as it recommends, around the work as a function. Outside of Lambda it is told how long a
 * run may take, since without that it takes every run in flight for a dead one.
 */
export const powertoolsRedis: Open = async (work, { redisPort }) => {
  const { makeIdempotent, IdempotencyConfig } = loadPeer<Powertools>('@aws-lambda-powertools/idempotency')
  const { CachePersistenceLayer } = loadPeer<{ CachePersistenceLayer: new (options: unknown) => unknown }>(
    '@aws-lambda-powertools/idempotency/cache',
  )
  const { client, close } = await openNodeRedis(redisPort)
  const config = new IdempotencyConfig({ eventKeyJmesPath: 'key' })
  config.registerLambdaContext({ getRemainingTimeInMillis: () => 30_000 })
  const run = makeIdempotent((_about, req) => succeeded(work(req)), {
    persistenceStore: new CachePersistenceLayer({ client }),
    config,
    dataIndexArgument: 0,
  })
  return {
    handlers: [
      async (req, res) => {
        try {
          sendPayout(res, await run({ key: req.headers[KEY], order: req.body }, req))
        } catch (error) {
          if (error instanceof Failed) sendPayout(res, error.payout)
          else res.status(409).json({ error: String(error) })
        }
      },
    ],
    close,
  }
}

/** It takes whatever is returned for a success. */
class Failed extends Error {
  readonly payout: Payout

  constructor(payout: Payout) {
    super('The work failed.')
    this.payout = payout
  }
}

async function succeeded(work: Promise<Payout>): Promise<Payout> {
  const payout = await work
  if (payout.status >= 400) throw new Failed(payout)
  return payout
}
