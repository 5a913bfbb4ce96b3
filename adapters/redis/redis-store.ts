import { Buffer, isAscii } from 'node:buffer'
import {
  type Answer,
  type BeginReply,
  type Claim,
  type CommandReply,
  checkOptions,
  type IdempotencyRecord,
  kindOf,
  type Ownership,
  optionRules,
  type Resolution,
  type Store,
  type StoreEvent,
  safeListener,
} from '../../src/core/index.js'
import { EXPECTED_CLIENT, misplacedClient, type RedisClient, type SendCommand, senderOf } from './client.js'
import { aPrefix } from './prefix.js'
import { readBegun, readDone, readInspected } from './reply.js'
import { BEGIN, COMPLETE, INSPECT, RELEASE, RENEW, RESOLVE, type Script } from './scripts.js'

interface Prefix {
  /**
   * What every key begins with, to share a database with others: a word and a colon, such as `'payments:'`, or a text that
   * ends with a sign that is in no key, such as `'shop:payments/'`. Nothing else, since it could meet another's records.
   * @default 'once-per-key:'
   */
  readonly prefix?: string | undefined

  /**
   * Takes the prefix as it is, be it empty. For records that 0.1.0 wrote under such a one: see that no other store's keys
   * begin with it, nor its namespaces make another's prefix of it.
   * @default false: two stores that meet give one merchant's answers to another
   */
  readonly prefixMayMeetOthers?: boolean | undefined
}

export type RedisStoreOptions = Prefix &
  (
    | {
        /** Opened, configured and closed by the application: ioredis or node-redis, alone, cluster or sentinel. */
        readonly client: RedisClient
        readonly sendCommand?: never
      }
    | {
        /** For any other client. */
        readonly sendCommand: SendCommand
        readonly client?: never
      }
  )

/**
 * Keeps records in Redis 7 or later, or Valkey, for many processes. One key a record, one script a command, one round trip
 * each. Redis must keep its data: `maxmemory-policy noeviction`, `appendonly yes`.
 *
 * @example const store = new RedisStore({ client: new Redis(process.env.REDIS_URL) })
 */
export class RedisStore implements Store {
  readonly #send: SendCommand
  readonly #prefix: string
  readonly #listeners: ((event: StoreEvent) => void)[] = []
  #policyWasRead = false
  /** Told to whoever observes later, too. */
  #atRisk: StoreEvent | undefined

  /** @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was sent. */
  constructor(options: RedisStoreOptions) {
    const misplaced = misplacedClient(options)
    if (misplaced !== null) checkOptions('RedisStore', {}, {}, {}, { more: [misplaced] })
    const given = options ?? {}
    const { client, sendCommand, prefix = 'once-per-key:', prefixMayMeetOthers = false } = given as RedisStoreOptions
    // One of the two is required: where both are missing, a client is.
    const values = { ...(sendCommand === undefined ? { client } : { sendCommand }), prefix, prefixMayMeetOthers }
    const rules = prefixMayMeetOthers === true ? { ...RULES, prefix: optionRules.aString } : RULES
    const more = client !== undefined && sendCommand !== undefined ? [ONE_TOO_MANY] : []
    checkOptions('RedisStore', given, values, rules, { required: Object.keys(values), more })
    this.#send = sendCommand ?? (senderOf(client) as SendCommand)
    this.#prefix = prefix
  }

  async begin(key: string, claim: Claim): Promise<BeginReply> {
    const { token, fingerprint, leaseMs, retentionMs, unknownOutcome } = claim
    return readBegun(await this.#run(BEGIN, key, [token, fingerprint, `${leaseMs}`, `${retentionMs}`, unknownOutcome]))
  }

  async renew(key: string, own: Ownership & { readonly leaseMs: number }): Promise<CommandReply> {
    return readDone(await this.#run(RENEW, key, [...argumentsOf(own), `${own.leaseMs}`]))
  }

  async complete(key: string, own: Ownership & { readonly answer: Answer }): Promise<CommandReply> {
    return readDone(await this.#run(COMPLETE, key, [...argumentsOf(own), ...argumentsOfAnswer(own.answer)]))
  }

  async release(key: string, own: Ownership & { readonly failedMs: number }): Promise<CommandReply> {
    return readDone(await this.#run(RELEASE, key, [...argumentsOf(own), `${own.failedMs}`]))
  }

  async inspect(key: string): Promise<IdempotencyRecord | null> {
    return readInspected(await this.#run(INSPECT, key, []))
  }

  async resolve(key: string, { token, attempt, answer, retentionMs }: Resolution): Promise<CommandReply> {
    const terms = [token, `${attempt}`, `${retentionMs}`]
    return readDone(await this.#run(RESOLVE, key, answer === null ? terms : [...terms, ...argumentsOfAnswer(answer)]))
  }

  observe(listener: (event: StoreEvent) => void): void {
    const tell = safeListener(listener)
    this.#listeners.push(tell)
    if (this.#atRisk !== undefined) tell(this.#atRisk)
  }

  /** By its digest; a server that has not seen the script (new, restarted, failed over) is given it once. */
  async #run(script: Script, key: string, args: readonly (string | Buffer)[]): Promise<unknown> {
    const redisKey = this.#prefix + key
    let reply: unknown
    try {
      reply = await this.#send(redisKey, ['EVALSHA', script.sha1, '1', redisKey, ...args])
    } catch (error) {
      if (!isNoScript(error)) throw error
      reply = await this.#send(redisKey, ['EVAL', script.text, '1', redisKey, ...args])
    }
    if (!this.#policyWasRead) void this.#readPolicy(redisKey)
    return reply
  }

  /**
   * Once, behind the first command that got through: an evicted record is a payment made twice. A refusal counts as read; a
   * connection that broke is asked again behind the next command. Never rejects.
   */
  async #readPolicy(redisKey: string): Promise<void> {
    this.#policyWasRead = true
    let policy: string | null = null
    try {
      policy = policyIn(await this.#send(redisKey, ['INFO', 'memory']))
    } catch (error) {
      if (!isRefusal(error)) {
        this.#policyWasRead = false
        return
      }
    }
    if (policy === 'noeviction') return
    this.#atRisk = { type: 'eviction_policy', policy, advice: POLICY_ADVICE }
    for (const tell of this.#listeners) tell(this.#atRisk)
  }
}

const POLICY_ADVICE =
  'Records must not be dropped to make room: a retry of a dropped one runs again. Set maxmemory-policy noeviction, or give ' +
  'the records a Redis of their own. Where INFO is not allowed, see to it by other means.'

/** `null`: the reply does not say. */
function policyIn(info: unknown): string | null {
  const [, policy = null] = /^maxmemory_policy:(\S+)/m.exec(String(info)) ?? []
  return policy
}

const ONE_TOO_MANY = 'client: expected either `client` or `sendCommand`, not both'

const RULES = {
  // What was seen is named by its kind: a URL may hold a password.
  client: (value: unknown) => (senderOf(value) === null ? { expected: EXPECTED_CLIENT, seen: kindOf(value) } : null),
  sendCommand: optionRules.aFunction,
  prefix: aPrefix,
  prefixMayMeetOthers: optionRules.oneOf(true, false),
}

function argumentsOf({ token, fingerprint, attempt, uncertain, retentionMs }: Ownership): string[] {
  return [token, fingerprint, `${attempt}`, uncertain ? '1' : '0', `${retentionMs}`]
}

function argumentsOfAnswer({ status, statusMessage, headers, body }: Answer): (string | Buffer)[] {
  const kept = body === null ? ['0', ''] : ['1', bulk(body)]
  return [`${status}`, statusMessage, JSON.stringify(headers), ...kept]
}

/** Clients write a command of texts in one piece; ASCII is the same in all their encodings. */
function bulk({ buffer, byteOffset, byteLength }: Uint8Array): string | Buffer {
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  return byteLength <= MOST_BYTES_AS_TEXT && isAscii(bytes) ? bytes.toString('latin1') : bytes
}

/** A longer text is copied at a higher price than another piece is sent. */
const MOST_BYTES_AS_TEXT = 4_096

/** Redis said no, by a code in capitals (`NOPERM …`, `ERR …`); a lost connection speaks in other words. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && /^[A-Z]{3,} /.test(error.message)
}

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
