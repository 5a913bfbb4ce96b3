import cluster from 'node:cluster'
import { LRUCache } from 'lru-cache'
import { safely } from '../../src/core/events.js'
import {
  type Answer,
  type Begun,
  type Claim,
  type Done,
  IdempotencyError,
  type IdempotencyRecord,
  machine,
  type Own,
  type Resolution,
  type Store,
  type StoreEvent,
} from '../../src/core/index.js'
import {
  aFunction,
  mistakesIn,
  oneOf,
  refuseMistakes,
  refuseNonObject,
  wholeNumber,
} from '../../src/core/validation.js'
import { KeptAnswer } from './kept-answer.js'
import { Shelves } from './shelves.js'

type StoredRecord = machine.StoredRecord
type Inspected = { readonly record: IdempotencyRecord | null }

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
  now: aFunction,
}

/** An allowance for what V8 and lru-cache take besides the text and the bytes. */
const RECORD_OVERHEAD_BYTES = 600

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

  /** In-flight, completed and uncertain records. */
  readonly #records = new Shelves(sizeOf)
  /** Certain failures. They keep only the attempt number and a fence against late commands: the oldest may go. */
  readonly #failures: LRUCache<string, StoredRecord>

  /** @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built. */
  constructor(options: MemoryStoreOptions = {}) {
    refuseNonObject('MemoryStore', options)
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
    const maxSize = Math.max(LEAST_FAILURE_BYTES, Math.floor(maxBytes / 8))
    this.#failures = new LRUCache({ maxSize, sizeCalculation: sizeOf })
    warnInClusterWorker()
  }

  async begin(key: string, claim: Claim): Promise<Begun> {
    let evictions = 0
    const reply = this.#step(key, (record, now) => {
      const step = machine.begin(record, claim, now)
      if (step.reply.acquired && this.#records.find(key) === undefined) {
        evictions = this.#makeRoom(step.record as StoredRecord, key, now)
      }
      return step
    })
    // Once the claim stands: a listener may call the store.
    for (let i = 0; i < evictions; i++) {
      for (const tell of this.#listeners) tell({ type: 'evicted', state: 'completed' })
    }
    return reply
  }

  async renew(key: string, own: Own & { readonly leaseMs: number }): Promise<Done> {
    return this.#step(key, (record, now) => machine.renew(record, own, now))
  }

  async complete(key: string, own: Parameters<Store['complete']>[1]): Promise<Done> {
    const answer = new KeptAnswer(own.answer)
    return this.#step(key, (record, now) => machine.complete(record, { ...own, answer }, now))
  }

  async release(key: string, own: Own & { readonly failedMs: number }): Promise<Done> {
    return this.#step(key, (record, now) => machine.release(record, own, now))
  }

  async inspect(key: string): Promise<IdempotencyRecord | null> {
    const { record } = this.#step(key, (stored, now) => {
      const step = machine.inspect(stored, now)
      return { ...step, reply: { record: step.reply } }
    })
    return record
  }

  async resolve(key: string, resolution: Resolution): Promise<Done> {
    const answer = resolution.answer && new KeptAnswer(resolution.answer)
    return this.#step(key, (record, now) => machine.resolve(record, { ...resolution, answer }, now))
  }

  observe(listener: (event: StoreEvent) => void): void {
    this.#listeners.push(safely(listener))
  }

  /** Forgets every record, those in flight included: for tests. */
  clear(): void {
    this.#records.clear()
    this.#failures.clear()
  }

  #step<Reply extends Begun | Done | Inspected>(
    key: string,
    command: (record: StoredRecord | null, now: number) => machine.Step<Reply>,
  ): Reply {
    const now = this.#now()
    const before = this.#records.find(key) ?? this.#failures.peek(key) ?? null
    const { record, reply } = command(before, now)
    if (record !== null && record !== before) this.#write(key, record, now)
    return withOwnAnswer(reply)
  }

  #write(key: string, record: StoredRecord, now: number): void {
    if (record.state === 'failed' && !record.uncertain) {
      this.#failures.set(key, record)
      this.#records.delete(key)
    } else {
      this.#records.put(key, record, now)
      this.#failures.delete(key)
    }
  }

  /**
   * Expired records go first, then, if evicting, completed ones, but only if that makes room enough. Nothing else goes:
   * the claim is refused. Returns how many were evicted.
   */
  #makeRoom(record: StoredRecord, key: string, now: number): number {
    const bytes = sizeOf(record, key)
    let evictions = 0
    while (!this.#fits(bytes, this.#records.total())) {
      if (this.#records.dropExpired(now)) continue
      const helps = this.#evicts && this.#fits(bytes, this.#records.total('uncompleted'))
      if (!helps || !this.#records.dropOldestCompleted()) throw this.#full()
      evictions++
    }
    return evictions
  }

  #fits(moreBytes: number, { count, bytes }: { readonly count: number; readonly bytes: number }): boolean {
    return count < this.#maxEntries && bytes + moreBytes <= this.#maxBytes
  }

  #full(): IdempotencyError {
    const { count, bytes } = this.#records.total()
    return new IdempotencyError(
      'store_full',
      `The memory store is full (${count} records, ${bytes} bytes), and nothing in it may be dropped yet. Raise maxBytes ` +
        'or maxEntries, shorten retentionMs, or use Redis.',
    )
  }
}

/** A reader may change what it was given, and so may whoever handed the answer in. */
function withOwnAnswer<Reply extends Begun | Done | Inspected>(reply: Reply): Reply {
  if (!('record' in reply) || reply.record?.state !== 'completed') return reply
  return { ...reply, record: { ...reply.record, answer: copyOf(reply.record.answer) } }
}

/** As plain fields: whoever spreads an answer must get all of it. */
function copyOf({ status, statusMessage, headers, body }: Answer): Answer {
  return { status, statusMessage, headers, body }
}

function sizeOf(record: StoredRecord, key: string): number {
  const { answer } = record as { answer?: KeptAnswer }
  return RECORD_OVERHEAD_BYTES + key.length + (answer?.byteLength ?? 0)
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
