import { Buffer, isAscii } from 'node:buffer'
import {
  type Answer,
  type BeginReply,
  type Claim,
  type CommandReply,
  checkOptions,
  type Forgetting,
  type IdempotencyRecord,
  kindOf,
  type ListedRecords,
  type Ownership,
  optionRules,
  type Resolution,
  type Store,
  type StoreEvent,
  safeListener,
} from '../../src/core/index.js'
import {
  EXPECTED_CLIENT,
  misplacedClient,
  type Node,
  nodesOf,
  type RedisClient,
  type SendCommand,
  senderOf,
  THE_ONLY_ONE,
} from './client.js'
import { FORGET, LISTED } from './forget-scripts.js'
import { aPrefix } from './prefix.js'
import { readBegun, readDone, readInspected } from './reply.js'
import { BEGIN, COMPLETE, INSPECT, RELEASE, RENEW, RESOLVE, type Script, UNKNOWN } from './scripts.js'
import { type Shows, walk } from './walk.js'

interface Prefix {
  /**
   * The prefix of every key, to share a database with others: a word and a colon, for example `'payments:'`, or a text
   * that ends with a character that no key part contains, for example `'shop:payments/'`. Any other could collide with
   * another store's records.
   * @default 'once-per-key:'
   */
  readonly prefix?: string | undefined

  /**
   * Accepts any prefix, even an empty one. Only for records that 0.1.0 wrote under such a prefix: make sure that no
   * other store's keys begin with it, and that it followed by one of its namespaces is not another store's prefix.
   * @default false: two stores that share records give one merchant's answers to another
   */
  readonly prefixMayMeetOthers?: boolean | undefined
}

export type RedisStoreOptions = Prefix &
  (
    | {
        /** An ioredis or node-redis client, cluster or sentinel. The application opens, configures and closes it. */
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
 * Keeps records in Redis 7 or later, or Valkey, for many processes. One key per record; one script and one round trip
 * per command. Redis must keep its data: `maxmemory-policy noeviction`, `appendonly yes`.
 *
 * @example const store = new RedisStore({ client: new Redis(process.env.REDIS_URL) })
 */
export class RedisStore implements Store {
  readonly #send: SendCommand
  readonly #prefix: string
  /** Every server that holds records. */
  readonly #nodes: () => Promise<readonly Node[]>
  readonly #listeners: ((event: StoreEvent) => void)[] = []
  #policyWasRead = false
  /** Kept for listeners that are added later. */
  #atRisk: StoreEvent | undefined

  /** @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was sent. */
  constructor(options: RedisStoreOptions) {
    const misplaced = misplacedClient(options)
    if (misplaced !== null) checkOptions('RedisStore', {}, {}, {}, { more: [misplaced] })
    const given = options ?? {}
    const { client, sendCommand, prefix = 'once-per-key:', prefixMayMeetOthers = false } = given as RedisStoreOptions
    // One of the two is required: if both are missing, the message asks for a client.
    const values = { ...(sendCommand === undefined ? { client } : { sendCommand }), prefix, prefixMayMeetOthers }
    const rules = prefixMayMeetOthers === true ? { ...RULES, prefix: optionRules.aString } : RULES
    const more = client !== undefined && sendCommand !== undefined ? [ONE_TOO_MANY] : []
    checkOptions('RedisStore', given, values, rules, { required: Object.keys(values), more })
    this.#send = sendCommand ?? (senderOf(client) as SendCommand)
    this.#nodes = async () =>
      client === undefined ? theOnlyServer(this.#send, prefix) : ((await nodesOf(client)) as Node[])
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

  /**
   * A walk by SCAN, over every master of a cluster: a step looks at some 200 keys. Where a failover happens meanwhile, records may
   * be left out: walk again. With a `sendCommand`, on a server that is no cluster.
   */
  async list(from: string | null): Promise<ListedRecords> {
    return this.#walk(from, { script: UNKNOWN })
  }

  async forget(key: string, { state, attempt, fingerprint, removes }: Forgetting): Promise<CommandReply> {
    const seen = [state, `${attempt}`, fingerprint ?? '']
    return readDone(await this.#run(FORGET, key, [...seen, removes ? '1' : '0']))
  }

  /** The same walk: SCAN looks at all keys, and those of the scope are shown. */
  async listScope(scope: string, from: string | null): Promise<ListedRecords> {
    return this.#walk(from, { script: LISTED, start: `${scope}:` })
  }

  async #walk(from: string | null, shows: Shows): Promise<ListedRecords> {
    // A client of a cluster that is still connecting knows only those servers that it was told.
    await this.#run(shows.script, '', [])
    const nodes = await this.#nodes()
    return walk(nodes, this.#prefix, from, shows, ({ send }, script, key) => runScript(send, script, key, []))
  }

  observe(listener: (event: StoreEvent) => void): void {
    const emit = safeListener(listener)
    this.#listeners.push(emit)
    if (this.#atRisk !== undefined) emit(this.#atRisk)
  }

  async #run(script: Script, key: string, args: readonly (string | Buffer)[]): Promise<unknown> {
    const redisKey = this.#prefix + key
    const reply = await runScript(this.#send, script, redisKey, args)
    if (!this.#policyWasRead) void this.#readPolicy(redisKey)
    return reply
  }

  /**
   * Reads the eviction policy once, after the first successful command: an evicted record is a payment made twice. A
   * refusal counts as read; after a lost connection it is tried again with the next command. Never rejects.
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
    for (const emit of this.#listeners) emit(this.#atRisk)
  }
}

/** Runs the script by its digest. A server without the script (new, restarted, failed over) gets its text once. */
async function runScript(
  send: SendCommand,
  { sha1, text }: Script,
  redisKey: string,
  args: readonly (string | Buffer)[],
): Promise<unknown> {
  try {
    return await send(redisKey, ['EVALSHA', sha1, '1', redisKey, ...args])
  } catch (error) {
    if (!isNoScript(error)) throw error
    return send(redisKey, ['EVAL', text, '1', redisKey, ...args])
  }
}

const POLICY_ADVICE =
  'Redis must not evict records: a retry of an evicted one runs again. Set maxmemory-policy noeviction, or give ' +
  'the records their own Redis. If INFO is not allowed, check the policy yourself.'

/** By a `sendCommand`, which goes where a key is: in a cluster a walk would miss what the other servers have. */
async function theOnlyServer(send: SendCommand, prefix: string): Promise<readonly Node[]> {
  if (!/^cluster_enabled:0/m.test(String(await send(prefix, ['INFO', 'cluster'])))) {
    throw new TypeError('In a cluster `list` needs a `client`: with a `sendCommand` it cannot reach every server.')
  }
  return [{ name: THE_ONLY_ONE, send, keyPrefix: '', added: '' }]
}

/** `null`: the reply does not contain it. */
function policyIn(info: unknown): string | null {
  const [, policy = null] = /^maxmemory_policy:(\S+)/m.exec(String(info)) ?? []
  return policy
}

const ONE_TOO_MANY = 'client: expected either `client` or `sendCommand`, not both'

const RULES = {
  // Only the kind of the value is shown: a URL may hold a password.
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

/** Text, because clients write a command of strings in one piece; ASCII has the same bytes in all their encodings. */
function bulk({ buffer, byteOffset, byteLength }: Uint8Array): string | Buffer {
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  return byteLength <= MOST_BYTES_AS_TEXT && isAscii(bytes) ? bytes.toString('latin1') : bytes
}

/** Above this size, copying the text costs more than sending a second piece. */
const MOST_BYTES_AS_TEXT = 4_096

/**
 * Whether Redis itself refused: its errors begin with a code in capitals (`NOPERM …`, `ERR …`), connection errors do
 * not.
 */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && /^[A-Z]{3,} /.test(error.message)
}

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
