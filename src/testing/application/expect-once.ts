import { randomUUID } from 'node:crypto'
import { describeKind, type OptionTable, optionRules, resolveOptions } from '../../core/index.js'
import { aHeaderName } from '../../http/index.js'
import { connectApp, type OnceApp, type OnceRequest } from './app-connection.js'
import { type ApplicationTrial, CASES, limitAnswerTime } from './cases.js'

/** A request that the application carries out. */
export interface ExpectOnceRequest {
  /** @default 'POST' */
  readonly method?: string | undefined
  readonly path: string
  /** All but the key: what authenticates, for example. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** A string as it is, anything else as JSON. */
  readonly body?: unknown
}

export interface ExpectOnceOptions {
  /**
   * How often the effect has taken place: the rows of a table, the calls that a bank of the test has received.
   * @default none: whether the handler ran is read from the answers alone
   */
  readonly effects?: (() => number | Promise<number>) | undefined

  /**
   * Makes the next effect fail: `'before'` it takes place, or `'after'`, as if the process died before it could answer: by a throw, or by
   * breaking the connection.
   * @default none: what follows a failure or a crash is skipped
   */
  readonly fail?: ((when: 'before' | 'after') => void | Promise<void>) | undefined

  /** Another valid body for the same key. @default the body with a number, or else a string, changed */
  readonly otherBody?: unknown

  /** @default 'Idempotency-Key' */
  readonly header?: string | undefined

  /** How many identical requests are sent at once. @default 5 */
  readonly atOnce?: number | undefined
}

/** What was tried. */
export interface ExpectedOnce {
  readonly checked: readonly string[]
  /** What could not be tried without the options `effects`, `fail` or `otherBody`. */
  readonly skipped: readonly string[]
}

/**
 * Tries on an application's own handler what clients do: a first request, its repeat, several at once, another body under the key, a
 * retry after a failure, and a retry and another body after a crash between the effect and the answer. Each with keys of its own, so it can be called on any
 * application that may carry the request out a few times. Works in vitest, jest and node:test.
 *
 * @example
 * test('a payout is paid once', () => expectOnce(app, { path: '/payouts', body: { amount: 100 } }, {
 *   effects: () => bank.transfers.length,
 *   fail: (when) => bank.failNext(when),
 * }))
 *
 * @throws AssertionError with the first promise that the application breaks, in words: "the handler ran twice: …". For misuse
 * IdempotencyError `options_invalid`, or a TypeError.
 */
export async function expectOnce(
  app: OnceApp,
  request: ExpectOnceRequest,
  options: ExpectOnceOptions = {},
): Promise<ExpectedOnce> {
  if (typeof Object(request).path !== 'string')
    throw new TypeError(
      "expectOnce needs a request that the handler accepts, such as { path: '/payouts', body: { amount: 100 } }.",
    )
  const { header, effects, fail, atOnce } = resolveOptions<ResolvedOptions>('expectOnce()', options, RULES)
  const { send, close } = await connectApp(app)
  const other = 'otherBody' in options ? options.otherBody : changeBody(request.body)
  const trial: ApplicationTrial = {
    send: (key, body) =>
      limitAnswerTime(send(buildRequest(request, header, key, body === 'other' ? other : request.body))),
    newKey: () => randomUUID(),
    effects: async () => (effects === undefined ? null : parseCount(await effects())),
    countsEffects: effects !== undefined,
    fail,
    hasOther: other !== undefined,
    atOnce,
  }
  const checked: string[] = []
  const skipped: string[] = []
  try {
    for (const { name, isPossible, run } of CASES) {
      if (!isPossible(trial)) skipped.push(name)
      else {
        await run(trial)
        checked.push(name)
      }
    }
  } finally {
    await close()
  }
  return { checked, skipped }
}

const RULES: OptionTable<ExpectOnceOptions> = {
  effects: optionRules.aFunction,
  fail: optionRules.aFunction,
  otherBody: optionRules.anything,
  header: { rule: aHeaderName, default: 'Idempotency-Key' },
  atOnce: { rule: optionRules.anInteger(2, 1_000), default: 5 },
}

type ResolvedOptions = ExpectOnceOptions & { readonly header: string; readonly atOnce: number }

/** A database may count in text or in a bigint: these would be compared, and added to, as what they are. */
function parseCount(count: unknown): number {
  if (Number.isFinite(count)) return count as number
  throw new TypeError(
    `\`effects\` returned ${describeKind(count)}: it must return how often the effect has taken place, as a number. Convert what a ` +
      'database counts: Number(rows[0].count).',
  )
}

function buildRequest(
  { method = 'POST', path, headers = {} }: ExpectOnceRequest,
  header: string,
  key: string,
  body: unknown,
): OnceRequest {
  const isJson = body !== undefined && typeof body !== 'string'
  const hasType = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type')
  return {
    method,
    path,
    headers: { ...(isJson && !hasType && { 'Content-Type': 'application/json' }), ...headers, [header]: key },
    body: body === undefined ? null : isJson ? JSON.stringify(body) : (body as string),
  }
}

/** The same kind of body with another value; `undefined`: there is none to change. */
function changeBody(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return undefined
  const members = Object.entries(body)
  const numeric = members.find(([, value]) => typeof value === 'number')
  const [name, value] = numeric ?? members.find(([, value]) => typeof value === 'string') ?? ['other', 0]
  return { ...body, [name]: typeof value === 'number' ? value + 1 : `${value}2` }
}
