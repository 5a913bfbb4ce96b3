import { createKeyring, type Keyring, type Keys } from './keys.js'
import { isRefusedByOperation, type Problem } from './reply.js'

export interface ClientOptions {
  /**
   * Where the keys of operations are stored: `localStorage` (survives a reload), `memoryKeys()`, an object with its
   * three functions, or a function that returns an operation's key. No default: if a key is lost with the page, a retry
   * pays a second time.
   */
  readonly keys: Keys
  /**
   * The function that sends a try.
   * @default the global `fetch`
   */
  readonly fetch?: typeof fetch | undefined
  /**
   * The time limit of a try, including its body.
   * @default 10_000
   */
  readonly tryTimeoutMs?: number | undefined
  /**
   * The time limit of a call, with its pauses and the storage. If the server asks for a longer wait, the call ends at
   * once with `unknown`.
   * @default 60_000: longer than the middleware's lease
   */
  readonly totalTimeoutMs?: number | undefined
  /**
   * The maximum number of tries in a call.
   * @default 8
   */
  readonly maxTries?: number | undefined
  /**
   * How long after its first try an operation may be tried again: at most as long as the service keeps records, less
   * five minutes. Later nothing is sent: the call ends with `unknown` and `problem.code` `key_expired`. Not for keys
   * that a function makes.
   * @default 86_100_000 (23 hours and 55 minutes): what the middleware accepts by default
   */
  readonly expiresAfterMs?: number | undefined
  /**
   * Whether a refusal settles the operation although the end of an earlier try, or of another client's, is unknown. By default: 400, 402, 409,
   * 410 and 422, unless the middleware itself refused. Use `() => false` for a service that may refuse before it looks
   * at the key, or whose handlers do not check their books after an unknown outcome. Not asked about the first try of a
   * new key that no other client uses: there, each 400–499 except 408 and 499 is a refusal.
   */
  readonly settles?: ((refusal: Response, problem: Problem | undefined) => boolean) | undefined
}

type Options = { readonly [Name in keyof ClientOptions]-?: Exclude<ClientOptions[Name], undefined> }

export type ResolvedClientOptions = Omit<Options, 'keys'> & { readonly keys: Keyring }

/** @throws TypeError, RangeError for invalid options. */
export function resolveClientOptions({ keys, ...given }: Partial<ClientOptions> = {}): ResolvedClientOptions {
  if (Object(keys) !== keys) throw new TypeError('`keys` is missing.')
  const rules: Omit<Options, 'keys'> & Record<string, unknown> = {
    fetch: (...sent) => globalThis.fetch(...sent),
    settles: isRefusedByOperation,
    tryTimeoutMs: 10_000,
    totalTimeoutMs: 60_000,
    maxTries: 8,
    expiresAfterMs: 86_100_000,
  }
  for (const [name, value] of Object.entries(given)) {
    const type = typeof rules[name]
    if (!rules[name]) throw new TypeError(`No option ${name}, but ${Object.keys(rules)}`)
    if (value === undefined) continue
    if (typeof value !== type) throw new TypeError(`${name}: use a ${type}`)
    // Longer timers fire immediately.
    if (type === 'number' && !(+value >= 1 && +value <= 2147483647)) throw new RangeError('Limits: 1 to 2147483647.')
    rules[name] = value
  }
  return { ...rules, keys: createKeyring(keys as Keys) }
}
