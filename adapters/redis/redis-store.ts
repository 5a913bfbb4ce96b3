import {
  type Answer,
  type BeginReply,
  type Claim,
  type CommandReply,
  type Forgetting,
  IdempotencyError,
  type IdempotencyRecord,
  type ListedRecords,
  type OptionRule,
  type Ownership,
  optionRules,
  type Resolution,
  resolveOptions,
  type StepChange,
  type Store,
  type StoreEvent,
  safeListener,
} from '../../src/core/index.js'
import {
  type ClusterNode,
  type CommandArguments,
  createSender,
  describeClient,
  EXPECTED_CLIENT,
  findMisplacedClient,
  listNodes,
  listOnlyServer,
  type RedisClient,
  readKeyPrefix,
  runScript,
  type SendCommand,
  toAsyncSender,
} from './client.js'
import { isCommandRefusal } from './errors.js'
import { FORGET, INSPECT, LISTED, RESOLVE, UNKNOWN } from './operator-scripts.js'
import { encodeBody, encodeBytes, encodeHead, encodeOwnerArgument, encodeTerms } from './own.js'
import { parseBeginReply, parseCommandReply, parseInspectReply } from './reply.js'
import { BEGIN, COMPLETE, RECORD_STEP, RELEASE, RENEW, type Script } from './scripts.js'
import { type ListedRange, listRecords } from './walk.js'

type PrefixOptions = {
  /**
   * The prefix of every key: a word and a colon, such as `'payments:'`, or a text that ends with a character that no
   * key part contains, such as `'shop:payments/'`. Another could meet another store's records.
   * @default 'once-per-key:'
   */
  readonly prefix?: string | undefined

  /**
   * Accepts any prefix, even an empty one, for records that exist under it. No other store's keys may begin with it,
   * and no other store's prefix may be this one with a namespace behind it.
   * @default false: two stores that share records give one merchant's answers to another
   */
  readonly prefixMayMeetOthers?: boolean | undefined
}

export type RedisStoreOptions = PrefixOptions &
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
  /** The prefix as Redis has it, behind that of the client: whoever looks from elsewhere, as operators do, finds the same. */
  readonly place: string
  readonly #prefix: string
  readonly #nodes: () => Promise<readonly ClusterNode[]>
  readonly #listeners: ((event: StoreEvent) => void)[] = []
  #policyWasRead = false
  /** Kept for listeners that are added later. */
  #atRisk: StoreEvent | undefined

  /** @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was sent. */
  constructor(options: RedisStoreOptions) {
    const misplaced = findMisplacedClient(options)
    if (misplaced !== null)
      throw new IdempotencyError('options_invalid', `The options of RedisStore are invalid:${misplaced}`)
    const { client, sendCommand, prefix } = readOptions(options ?? {})
    this.#send = toAsyncSender(sendCommand ?? (createSender(client) as SendCommand))
    this.#nodes = () => (client === undefined ? listOnlyServer(this.#send, prefix) : listNodes(client))
    this.#prefix = prefix
    this.place = (client === undefined ? '' : readKeyPrefix(client)) + prefix
  }

  begin(key: string, claim: Claim): Promise<BeginReply> {
    return this.#run(BEGIN, key, [encodeOwnerArgument(claim), encodeTerms(claim)], parseBeginReply)
  }

  renew(key: string, own: Ownership & { readonly leaseMs: number }): Promise<CommandReply> {
    return this.#run(RENEW, key, [encodeOwnerArgument(own), encodeTerms(own)], parseCommandReply)
  }

  complete(key: string, own: Ownership & { readonly answer: Answer }): Promise<CommandReply> {
    const { answer } = own
    return this.#run(
      COMPLETE,
      key,
      [encodeOwnerArgument(own), encodeTerms(own), encodeHead(answer), encodeBody(answer)],
      parseCommandReply,
    )
  }

  release(key: string, own: Ownership & { readonly failedMs: number }): Promise<CommandReply> {
    return this.#run(RELEASE, key, [encodeOwnerArgument(own), encodeTerms(own)], parseCommandReply)
  }

  step(key: string, own: Ownership & StepChange & { readonly leaseMs: number }): Promise<CommandReply> {
    const { label, order, state, result } = own
    const args = [encodeOwnerArgument(own), encodeTerms(own), `${order} ${state} ${label}`]
    return this.#run(RECORD_STEP, key, result === null ? args : [...args, encodeBytes(result)], parseCommandReply)
  }

  inspect(key: string): Promise<IdempotencyRecord | null> {
    return this.#run(INSPECT, key, [], parseInspectReply)
  }

  resolve(key: string, { token, attempt, answer, retentionMs, rerun }: Resolution): Promise<CommandReply> {
    const terms = [token, `${attempt}`, `${retentionMs}`]
    if (rerun === true) return this.#run(RESOLVE, key, [...terms, 'rerun'], parseCommandReply)
    const args = answer === null ? terms : [...terms, encodeHead(answer), encodeBody(answer)]
    return this.#run(RESOLVE, key, args, parseCommandReply)
  }

  /**
   * A walk by SCAN, over every master of a cluster: a step looks at some 200 keys. While slots are moved, and where the client does
   * not know every master, it throws; if slots have moved between two steps, or a failover happens, records may be left out: walk again.
   * With a `sendCommand`, on a server that is no cluster.
   */
  async list(from: string | null): Promise<ListedRecords> {
    return this.#walk(from, { script: UNKNOWN })
  }

  forget(key: string, { state, attempt, fingerprint, removes }: Forgetting): Promise<CommandReply> {
    return this.#run(FORGET, key, [state, `${attempt}`, fingerprint ?? '', removes ? '1' : '0'], parseCommandReply)
  }

  /** The same walk: SCAN looks at all keys, and those of the scope are shown. */
  async listScope(scope: string, from: string | null): Promise<ListedRecords> {
    return this.#walk(from, { script: LISTED, keyStart: `${scope}:` })
  }

  async #walk(from: string | null, shows: ListedRange): Promise<ListedRecords> {
    // A client of a cluster that is still connecting knows only those servers that it was told.
    await this.#run(shows.script, '', [], () => {})
    const nodes = await this.#nodes()
    return listRecords(nodes, this.#prefix, from, shows)
  }

  observe(listener: (event: StoreEvent) => void): void {
    const emit = safeListener(listener)
    this.#listeners.push(emit)
    if (this.#atRisk !== undefined) emit(this.#atRisk)
  }

  async #run<Reply>(
    script: Script,
    key: string,
    args: CommandArguments,
    read: (reply: unknown) => Reply,
  ): Promise<Reply> {
    const redisKey = this.#prefix + key
    const reply = await runScript(this.#send, script, redisKey, args)
    if (!this.#policyWasRead) void this.#readPolicy(redisKey)
    return read(reply)
  }

  /**
   * Reads the eviction policy once, after the first successful command: an evicted record is a payment made twice. A
   * refusal counts as read; after a lost connection it is tried again with the next command. Never rejects.
   */
  async #readPolicy(redisKey: string): Promise<void> {
    this.#policyWasRead = true
    let policy: string | null = null
    try {
      policy = parseEvictionPolicy(await this.#send(redisKey, ['INFO', 'memory']))
    } catch (error) {
      if (!isCommandRefusal(error)) {
        this.#policyWasRead = false
        return
      }
    }
    if (policy === 'noeviction') return
    this.#atRisk = { type: 'eviction_policy', policy, advice: POLICY_ADVICE }
    for (const emit of this.#listeners) emit(this.#atRisk)
  }
}

const POLICY_ADVICE =
  'Redis must not evict records: a retry of an evicted one runs again. Set maxmemory-policy noeviction, or give ' +
  'the records their own Redis. If INFO is not allowed, check the policy yourself.'

/** `null`: the reply does not contain it. */
function parseEvictionPolicy(info: unknown): string | null {
  const [, policy = null] = /^maxmemory_policy:(\S+)/m.exec(String(info)) ?? []
  return policy
}

const ONE_TOO_MANY = 'client: expected either `client` or `sendCommand`, not both'

function readOptions(options: RedisStoreOptions) {
  const { sendCommand, prefixMayMeetOthers } = options
  return resolveOptions<ResolvedRedisOptions>('RedisStore', options, {
    // One of the two is required: if both are missing, the message asks for a client.
    client: { rule: findClientFault, isRequired: sendCommand === undefined, findConflicts: findSecondClient },
    sendCommand: optionRules.aFunction,
    prefix: { rule: prefixMayMeetOthers === true ? optionRules.aString : findPrefixFault, default: 'once-per-key:' },
    prefixMayMeetOthers: optionRules.aBoolean,
  })
}

type ResolvedRedisOptions = { readonly prefix: string } & Pick<RedisStoreOptions, 'client' | 'sendCommand'>

/** Only the kind of the value is shown: a URL may hold a password. */
const findClientFault: OptionRule = (value) =>
  createSender(value) === null ? { expected: EXPECTED_CLIENT, seen: describeClient(value) } : null

function findSecondClient(_values: unknown, { client, sendCommand }: RedisStoreOptions): string[] {
  return client !== undefined && sendCommand !== undefined ? [ONE_TOO_MANY] : []
}

/**
 * A storage key has two parts, `scope:key`, or three, `namespace:scope:key`, each made by `encodeURIComponent`. So one
 * prefix can reach the keys of a longer one: `once:` with the namespace `billing` writes `once:billing:…`, as does the
 * prefix `once:billing:`; and `once` with a scope `-per-key` writes what `once-per-key:` may write. No two allowed
 * prefixes can collide: each ends in a character that no part contains, and a colon may only follow a single word or
 * come before such a character.
 */
function findPrefixFault(value: unknown): string | null {
  if (typeof value !== 'string') return 'a string'
  if (value.isWellFormed() && (A_WORD_AND_A_COLON.test(value) || ENDS_OUTSIDE_OF_PARTS.test(value))) return null
  return (
    "a word and a colon, such as 'payments:', or a text that ends in another character, such as 'shop:payments/': another " +
    'prefix or namespace could make the same keys. If records already have this prefix, and no other store shares the ' +
    'server, add `prefixMayMeetOthers: true`'
  )
}

const A_WORD_AND_A_COLON = /^[\w\-.!~*'()%]+:$/
const ENDS_OUTSIDE_OF_PARTS = /[^\w\-.!~*'()%:]$/
