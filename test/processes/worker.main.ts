// A worker in a process of its own, which does one operation by a runner. What happens goes to its output, a line each.
import { Redis } from 'ioredis'
import type { IdempotencyContext } from 'once-per-key'
import { PostgresStore } from 'once-per-key/postgres'
import { RedisStore } from 'once-per-key/redis'
import { RefusedError, type RunnerOptions, runner } from 'once-per-key/run'
import { Pool } from 'pg'
import type { Line, Point, Settings } from './workers.js'

const settings: Settings = JSON.parse(process.argv[2] ?? '')
const { key, unknownOutcome, stopsAt } = settings
const { store, effect, connect, close } = settings.redisPort === undefined ? onPostgres() : onRedis(settings.redisPort)

const options: RunnerOptions & { readonly result?: undefined } = {
  store,
  name: 'payouts',
  unknownOutcome,
  leaseMs: 4_000,
  storeTimeoutMs: 1_000,
  onEvent: () => {},
}
const once = runner(options)

async function payOnce(): Promise<Line> {
  try {
    return {
      result: await once({ scope: 'acme', key, input: 100 }, async (context) => {
        tell({ told: [context.attempt, context.previousOutcome] })
        await at('before')
        await effect(context)
        await at('after')
        return 'paid'
      }),
    }
  } catch (error) {
    if (error instanceof RefusedError) return { refused: error.code, isWorthARetry: error.retryAfterMs !== null }
    throw error
  }
}

/** As a queue does, which delivers again what was refused for now. */
async function payUntilDecided(): Promise<Line> {
  while (true) {
    const line = await payOnce()
    if (!('refused' in line && line.isWorthARetry)) return line
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

await connect()
tell(await payUntilDecided())
await once.idle()
await close()

function tell(line: Line): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

/** Where it is to be killed, it waits for that. */
async function at(point: Point): Promise<void> {
  if (point !== stopsAt) return
  tell({ at: point })
  await new Promise(() => setInterval(() => {}, 60_000))
}

/** Two writes, neither of which is in a transaction; the derived key makes each of them happen once. */
function onRedis(port: number) {
  const client = new Redis(port)
  return {
    store: new RedisStore({ client }),
    async effect(context: IdempotencyContext) {
      await client.sadd(`${key}:debits`, context.deriveKey('debit'))
      await at('inside')
      await client.sadd(`${key}:credits`, context.deriveKey('credit'))
    },
    connect: () => client.ping(),
    close: () => client.quit(),
  }
}

/** Two writes that commit with the record. */
function onPostgres() {
  const pool = new Pool({ connectionString: settings.databaseUrl, max: 4 })
  const store = new PostgresStore({ pool, transactions: pool })
  return {
    store,
    effect: (context: IdempotencyContext) =>
      store.transaction(context, async (tx) => {
        await tx.query("INSERT INTO books VALUES ($1, 'debit')", [key])
        await at('inside')
        await tx.query("INSERT INTO books VALUES ($1, 'credit')", [key])
        return 'paid'
      }),
    connect: () => pool.query('SELECT 1'),
    close: () => pool.end(),
  }
}
