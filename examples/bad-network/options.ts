import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { isPostgresUrl, POSTGRES_LIKE } from '../payments/postgres-url.js'
import { redisPlaceOf } from '../payments/redis-place.js'

/** What a run is asked to do. */
export interface Options {
  readonly help: boolean
  /** Where a running example is. */
  readonly url?: string
  /** What two processes of the example are started on. */
  readonly shared?: Shared
  readonly seed: number
  readonly operations: number
  readonly clients: number
  readonly isProtected: boolean
}

/** A server that several processes keep their records and books in. Without a URL, one of our own is started. */
export interface Shared {
  readonly name: 'Redis' | 'Postgres'
  readonly url?: string
}

/** An option that cannot be used. Its message is one line, and shows no secret. */
export class OptionInvalid extends Error {}

const DEFAULTS = { operations: 400, clients: 20 }

export const HELP = `Payments over a bad network: clients that time out, repeat, race, hang up, change bodies and share keys.
At the end, the service's own books say how often each payment was made.

npm run simulate -- [options]

  --url <address>     a payments example that runs already, such as http://localhost:3000
                      Without it, one is started on a free port, and ended afterwards.
  --redis <address>   starts two processes on this Redis, kills one (-9) in the middle, and starts it again
                      (default: REDIS_URL). It only adds records and entries; redis://localhost:6379/9 keeps them apart.
  --postgres          the same on a Postgres, where a payment commits with the record of its key: on that of DATABASE_URL,
                      or else on one that is started for the run (found, or as root on Debian installed)
  --unprotected       the same clients without the Idempotency-Key header: what would have been made twice
  --seed <number>     makes the choices of an earlier run again (their timing is the machine's)
  --operations <n>    how many payments are wanted (default ${DEFAULTS.operations})
  --clients <n>       how many clients send them (default ${DEFAULTS.clients})

Exit code: 0 all as promised, or --unprotected; 1 not as promised; 2 it could not run.`

/** What makes the same choices again. */
export function commandOf({ url, shared, seed, operations, clients, isProtected }: Options): string {
  return [
    `npm run simulate -- --seed ${seed}`,
    ...(operations === DEFAULTS.operations ? [] : [`--operations ${operations}`]),
    ...(clients === DEFAULTS.clients ? [] : [`--clients ${clients}`]),
    ...(url === undefined ? [] : [`--url ${url}`]),
    ...(shared === undefined ? [] : argumentsOf(shared)),
    ...(isProtected ? [] : ['--unprotected']),
  ].join(' ')
}

function argumentsOf({ name, url = '' }: Shared): string[] {
  if (name === 'Postgres') return ['--postgres']
  // A password is not printed: it stays in REDIS_URL.
  return new URL(url).password === '' ? [`--redis ${url}`] : []
}

/** @throws OptionInvalid */
export function optionsOf(args: readonly string[], env: Environment): Options {
  const values = valuesOf(args)
  const { url } = values
  const shared = sharedOf(values, env)
  return {
    help: values.help ?? false,
    ...(url !== undefined && { url: originOf(url) }),
    ...(shared && { shared }),
    seed: values.seed === undefined ? randomInt(2 ** 32) : wholeNumber('--seed', values.seed, 0, 2 ** 32 - 1),
    operations: wholeNumber('--operations', values.operations ?? `${DEFAULTS.operations}`, 1, 100_000),
    clients: wholeNumber('--clients', values.clients ?? `${DEFAULTS.clients}`, 1, 200),
    isProtected: !values.unprotected,
  }
}

function valuesOf(args: readonly string[]) {
  const one = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  const options = {
    ...{ url: one, redis: one, seed: one, operations: one, clients: one },
    ...{ postgres: flag, unprotected: flag, help: { ...flag, short: 'h' } },
  } as const
  try {
    return parseArgs({ args: [...args], options }).values
  } catch (error) {
    // Behind its first sentence, Node's message explains how Node reads arguments.
    const [sentence] = (error as Error).message.split(/\.\s|\n/)
    throw new OptionInvalid(`${sentence?.replace(/\.$/, '')}. See --help.`)
  }
}

function wholeNumber(name: string, given: string, least: number, most: number): number {
  const number = /^\d{1,10}$/.test(given) ? Number(given) : Number.NaN
  if (number >= least && number <= most) return number
  throw new OptionInvalid(`${name} must be an integer from ${least} to ${most}; seen: ${JSON.stringify(given)}.`)
}

function originOf(given: string): string {
  const { protocol = '', pathname = '', search = '', origin = '' } = URL.canParse(given) ? new URL(given) : {}
  if (protocol === 'http:' && pathname === '/' && search === '') return origin
  throw new OptionInvalid('--url must be like http://localhost:3000.')
}

type Environment = Readonly<Record<string, string | undefined>>

/** Redis by its address; Postgres by its name, since DATABASE_URL is often that of an application. */
function sharedOf({ url, redis, postgres }: ReturnType<typeof valuesOf>, env: Environment): Shared | undefined {
  if ([url, redis, postgres].filter((given) => given !== undefined).length > 1)
    throw new OptionInvalid('Give one of --url, --redis and --postgres.')
  if (url !== undefined) return undefined
  if (postgres) {
    const { DATABASE_URL } = env
    return { name: 'Postgres', ...(DATABASE_URL && { url: checked('DATABASE_URL', POSTGRES, DATABASE_URL) }) }
  }
  const given = redis || env.REDIS_URL
  return given ? { name: 'Redis', url: checked(redis ? '--redis' : 'REDIS_URL', REDIS, given) } : undefined
}

interface Form {
  readonly fits: (url: string) => boolean
  readonly like: string
}

const REDIS: Form = {
  fits: (url) => redisPlaceOf(url) !== null,
  like: 'redis://localhost:6379 or rediss://user:password@host:6379/0',
}
const POSTGRES: Form = { fits: isPostgresUrl, like: POSTGRES_LIKE }

function checked(name: string, { fits, like }: Form, given: string): string {
  if (fits(given)) return given
  // What was seen stays out of it: it may hold a password.
  throw new OptionInvalid(`${name} must be like ${like}.`)
}
