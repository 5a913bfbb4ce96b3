import { Buffer } from 'node:buffer'
import cluster from 'node:cluster'
import { LRUCache } from 'lru-cache'
import {
  type Begun,
  type Claim,
  type Done,
  IdempotencyError,
  machine,
  type Own,
  type Store,
  type StoreEvent,
} from '../../src/core/index.js'
import { isFunction, mistakesIn, oneOf, refuseMistakes, wholeNumber } from '../../src/core/validation.js'

type StoredRecord = machine.StoredRecord

export interface MemoryStoreOptions {
  /**
   * How much the records may take, in bytes: keys, headers and bodies, with an allowance for the engine's own structures.
   * A claim beyond it is refused; the completion of a claim that was made never is, so what is in flight may exceed it.
   * @default 134_217_728 (128 MiB)
   */
  readonly maxBytes?: number

  /**
   * How many records are kept, certain failures aside.
   * @default 1_000_000
   */
  readonly maxEntries?: number

  /**
   * What happens when it is full and nothing has expired. `'refuse'`: `begin` throws `store_full`, so a request gets 503.
   * `'evict'`: the completed record that was written the longest ago is dropped, with an event; a retry of it runs again.
   * @default 'refuse': a record that is dropped early is a payment made twice
   */
  readonly whenFull?: 'refuse' | 'evict'

  /**
   * The clock, in milliseconds, never going back.
   * @default performance.now(): a change of the wall clock ends no lease
   */
  readonly now?: () => number
}

const RULES = {
  maxBytes: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  maxEntries: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  whenFull: oneOf('refuse', 'evict'),
  now: isFunction,
}

/** An allowance for what V8 and lru-cache take besides the text and the bytes. */
const RECORD_OVERHEAD_BYTES = 600
const HEADER_OVERHEAD_BYTES = 100

/** Room for the fences of some hundred failures, however small the store. */
const LEAST_FAILURE_BYTES = 256 * 1024

/**
 * Keeps records in this process, for one process: nothing survives a restart, and another process sees nothing of it.
 * Bounded by bytes and by count. In-flight and uncertain records are never dropped.
 *
 * @example const once = idempotency({ store: new MemoryStore(), scope: (req) => req.merchantId })
 */
export class MemoryStore implements Store {
  readonly effects = 'outside'
  readonly #maxBytes: number
  readonly #maxEntries: number
  readonly #evicts: boolean
  readonly #now: () => number
  readonly #listeners: ((event: StoreEvent) => void)[] = []

  /** In-flight, completed and uncertain records, the one that was written the longest ago last. */
  readonly #records: LRUCache<string, StoredRecord>
  /** Certain failures. They keep only the attempt number and a fence against late commands: the oldest may go. */
  readonly #failures: LRUCache<string, StoredRecord>
  /** No record in `#records` expires before. */
  #nextExpiryAt = Number.POSITIVE_INFINITY

  /** @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built. */
  constructor(options: MemoryStoreOptions = {}) {
    const {
      maxBytes = 128 * 2 ** 20,
      maxEntries = 1_000_000,
      whenFull = 'refuse',
      now = () => performance.now(),
    } = options
    refuseMistakes('MemoryStore', mistakesIn(options, { maxBytes, maxEntries, whenFull, now }, RULES))
    this.#maxBytes = maxBytes
    this.#maxEntries = maxEntries
    this.#evicts = whenFull === 'evict'
    this.#now = now
    // #makeRoom keeps these bounds, since it knows what may go: lru-cache drops nothing here by itself.
    this.#records = recordCache(Number.MAX_SAFE_INTEGER, now)
    this.#failures = recordCache(Math.max(LEAST_FAILURE_BYTES, Math.floor(maxBytes / 8)), now)
    warnInClusterWorker()
  }

  async begin(key: string, claim: Claim): Promise<Begun> {
    return this.#step(key, (record, now) => {
      const step = machine.begin(record, claim, now)
      if (step.reply.acquired && !this.#records.has(key)) this.#makeRoom(step.record, key, now)
      return step
    })
  }

  async renew(key: string, own: Own & { readonly leaseMs: number }): Promise<Done> {
    return this.#step(key, (record, now) => machine.renew(record, own, now))
  }

  async complete(key: string, own: Parameters<Store['complete']>[1]): Promise<Done> {
    return this.#step(key, (record, now) => {
      const { body } = own.answer
      // Own bytes: the caller may reuse its buffer, and a slice of a pool would keep the whole pool.
      const answer = body === null ? own.answer : { ...own.answer, body: Buffer.copyBytesFrom(body) }
      return machine.complete(record, { ...own, answer }, now)
    })
  }

  async release(key: string, own: Own & { readonly failedMs: number }): Promise<Done> {
    return this.#step(key, (record, now) => machine.release(record, own, now))
  }

  observe(listener: (event: StoreEvent) => void): void {
    this.#listeners.push(listener)
  }

  /** Forgets every record, those in flight included: for tests. */
  clear(): void {
    this.#records.clear()
    this.#failures.clear()
    this.#nextExpiryAt = Number.POSITIVE_INFINITY
  }

  #step<Reply>(key: string, command: (record: StoredRecord | null, now: number) => machine.Step<Reply>): Reply {
    const now = this.#now()
    const before = this.#records.peek(key) ?? this.#failures.peek(key) ?? null
    const { record, reply } = command(before, now)
    if (record !== null && record !== before) this.#write(key, record, now)
    return reply
  }

  #write(key: string, record: StoredRecord, now: number): void {
    const options = { ttl: Math.max(1, Math.ceil(record.expiresAt - now)), start: now }
    if (record.state === 'failed' && !record.uncertain) {
      this.#records.delete(key)
      this.#failures.set(key, record, options)
      return
    }
    this.#failures.delete(key)
    this.#records.set(key, record, options)
    this.#nextExpiryAt = Math.min(this.#nextExpiryAt, record.expiresAt)
  }

  /** Expired records go first, then, if evicting, completed ones. Nothing else goes: the claim is refused. */
  #makeRoom(record: StoredRecord | null, key: string, now: number): void {
    const bytes = record === null ? 0 : bytesOf(record, key)
    if (this.#hasRoom(bytes)) return
    if (now >= this.#nextExpiryAt) this.#dropExpired(bytes, now)
    if (this.#evicts) this.#evict(bytes)
    if (this.#hasRoom(bytes)) return
    throw new IdempotencyError(
      'store_full',
      `The memory store is full (${this.#records.size} records, ${this.#records.calculatedSize} bytes), and nothing in it may ` +
        'be dropped yet. Raise maxBytes or maxEntries, shorten retentionMs, or use Redis.',
    )
  }

  #hasRoom(bytes: number): boolean {
    return this.#records.size < this.#maxEntries && this.#records.calculatedSize + bytes <= this.#maxBytes
  }

  /**
   * Goes from the oldest to the newest. Where all are kept equally long, the expired ones come first, and it stops with
   * the room that is needed; past a live record it goes through all, once for each expiry.
   */
  #dropExpired(bytes: number, now: number): void {
    let nextExpiryAt = Number.POSITIVE_INFINITY
    for (const [key, record] of oldestFirst(this.#records)) {
      if (now >= record.expiresAt) this.#records.delete(key)
      else nextExpiryAt = Math.min(nextExpiryAt, record.expiresAt)
      if (nextExpiryAt === Number.POSITIVE_INFINITY && this.#hasRoom(bytes)) return
    }
    this.#nextExpiryAt = nextExpiryAt
  }

  #evict(bytes: number): void {
    for (const [key, record] of oldestFirst(this.#records)) {
      if (this.#hasRoom(bytes)) return
      if (record.state !== 'completed') continue
      this.#records.delete(key)
      for (const listener of this.#listeners) listener({ type: 'evicted', state: 'completed' })
    }
  }
}

/** `allowStale`: whether a record has expired is the machine's to say. */
function recordCache(maxSize: number, now: () => number): LRUCache<string, StoredRecord> {
  return new LRUCache({
    maxSize,
    sizeCalculation: bytesOf,
    ttl: 1,
    ttlResolution: 0,
    allowStale: true,
    perf: { now },
  })
}

function oldestFirst(cache: LRUCache<string, StoredRecord>): Iterable<[key: string, record: StoredRecord]> {
  return cache.rentries() as Iterable<[string, StoredRecord]> // lru-cache types an entry as an array of either.
}

function bytesOf(record: StoredRecord, key: string): number {
  let bytes = RECORD_OVERHEAD_BYTES + key.length
  if (record.state === 'completed') {
    const { headers, body } = record.answer
    for (const [name, value] of headers) bytes += HEADER_OVERHEAD_BYTES + name.length + value.length
    bytes += body?.byteLength ?? 0
  }
  return bytes
}

let warned = false

function warnInClusterWorker(): void {
  if (warned || !cluster.isWorker) return
  warned = true
  process.emitWarning(
    'MemoryStore in a node:cluster worker: each worker keeps records of its own, so a retry that reaches another worker ' +
      'runs again. Use RedisStore from once-per-key/redis.',
    { type: 'OncePerKeyWarning', code: 'ONCE_PER_KEY_MEMORY_STORE_IN_CLUSTER' },
  )
}
