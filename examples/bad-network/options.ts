import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { redisPlaceOf } from '../payments/redis-place.js'

/** What a run is asked to do. */
export interface Options {
  readonly help: boolean
  /** Where a running example is. */
  readonly url?: string
  /** Where the Redis is that two processes of the example are started on. */
  readonly redis?: string
  readonly seed: number
  readonly operations: number
  readonly clients: number
  readonly isProtected: boolean
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
  --unprotected       the same clients without the Idempotency-Key header: what would have been made twice
  --seed <number>     makes the choices of an earlier run again (their timing is the machine's)
  --operations <n>    how many payments are wanted (default ${DEFAULTS.operations})
  --clients <n>       how many clients send them (default ${DEFAULTS.clients})

Exit code: 0 all as promised, or --unprotected; 1 not as promised; 2 it could not run.`

/** What makes the same choices again. */
export function commandOf({ url, redis, seed, operations, clients, isProtected }: Options): string {
  const isSecret = redis !== undefined && new URL(redis).password !== ''
  return [
    `npm run simulate -- --seed ${seed}`,
    ...(operations === DEFAULTS.operations ? [] : [`--operations ${operations}`]),
    ...(clients === DEFAULTS.clients ? [] : [`--clients ${clients}`]),
    ...(url === undefined ? [] : [`--url ${url}`]),
    // A password is not printed: it stays in REDIS_URL.
    ...(redis === undefined || isSecret ? [] : [`--redis ${redis}`]),
    ...(isProtected ? [] : ['--unprotected']),
  ].join(' ')
}

/** @throws OptionInvalid */
export function optionsOf(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Options {
  const values = valuesOf(args)
  const { url, redis } = values
  if (url !== undefined && redis !== undefined) throw new OptionInvalid('Give --url or --redis, not both.')
  const redisUrl = url === undefined ? redis || env.REDIS_URL : undefined
  return {
    help: values.help ?? false,
    ...(url !== undefined && { url: originOf(url) }),
    ...(redisUrl && { redis: checkedRedis(redis === undefined ? 'REDIS_URL' : '--redis', redisUrl) }),
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
    ...{ unprotected: flag, help: { ...flag, short: 'h' } },
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

function checkedRedis(name: string, given: string): string {
  if (redisPlaceOf(given) !== null) return given
  // What was seen stays out of it: it may hold a password.
  throw new OptionInvalid(`${name} must be like redis://localhost:6379 or rediss://user:password@host:6379/0.`)
}
