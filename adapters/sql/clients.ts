import type { StoreEvent } from '../../src/core/index.js'

// What the clients of MySQL and of Postgres have in common.

// --- their conflicts

/** How often a statement is sent that the database rolls back each time, in favour of another one. */
const MOST_TRIES = 10
const FIRST_PAUSE_MS = 2

/** Sends a statement again if it failed by a conflict with another one. Rejects with what `failed` makes of the last error. */
export async function retryConflicts<Result>(
  send: () => Promise<Result>,
  isConflict: (error: unknown) => boolean,
  failed: (error: unknown) => Error,
): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await send()
    } catch (error) {
      if (tries === MOST_TRIES || !isConflict(error)) throw failed(error)
      // Random, so that conflicting commands do not conflict again.
      await new Promise((resolve) => setTimeout(resolve, Math.random() * FIRST_PAUSE_MS * 2 ** tries))
    }
  }
}

const LONG_WAIT_MS = 100
const REPORTED_EVERY_MS = 10_000

/**
 * The longest that a command that is worth nothing late, or is sent again, waits for its turn in the pool, where no engine waits for a
 * shorter time, and its share of that: of the default, two seconds, it is the same.
 */
const LONGEST_WAIT_MS = 1_500
const SHARE_OF_LIMIT = 3 / 4

/** The commands that wait for a connection. */
export class PoolTurns {
  /** Whoever wants to know how many wait. */
  onEvent: (event: StoreEvent) => void = () => {}
  readonly #advice: string
  #reportedAt = Number.NEGATIVE_INFINITY
  /**
   * How long an urgent command waits for a connection. A command that was given up must not take the turn of a command whose caller still
   * waits: after an outage, clients that retry would otherwise keep the pool busy with late claims and their releases. The end of a run
   * waits for its turn without this limit.
   */
  #longestMs = LONGEST_WAIT_MS

  readonly #StoreError: StoreErrorClass

  /** `most`: the client's name of the size of a pool. */
  constructor(most: string, StoreError: StoreErrorClass) {
    this.#StoreError = StoreError
    this.#advice =
      `Give the store its own pool, from which no handler takes connections. If it has one, raise its \`${most}\`, and find out ` +
      'what keeps the database busy.'
  }

  /** Lowers the limit where an engine waits less long for a reply. */
  limitWait(storeTimeoutMs: number | undefined): void {
    if (storeTimeoutMs === undefined) return
    this.#longestMs = Math.min(this.#longestMs, storeTimeoutMs * SHARE_OF_LIMIT)
  }

  /**
   * Takes a connection from the pool, and reports how many commands wait if it does not come soon. `isUrgent`: whether the command is useless if it comes late.
   * `countWaiting` returns `undefined` where the pool does not say.
   */
  async connect<Connection extends { release(): unknown }>(
    take: () => Promise<Connection>,
    countWaiting: () => number | undefined,
    isUrgent: boolean,
  ): Promise<Connection> {
    const before = countWaiting()
    const timer = setTimeout(() => this.#report(countWaiting() ?? 0), LONG_WAIT_MS).unref()
    try {
      const taken = take()
      // Unless the pool opens one for this command, which takes nobody's turn.
      const waits = isUrgent && (before === undefined || countWaiting() !== before)
      return await (waits ? this.#awaitWithinLimit(taken) : taken)
    } finally {
      clearTimeout(timer)
    }
  }

  /** A connection that comes too late goes at once to the next command that waits. */
  #awaitWithinLimit<Connection extends { release(): unknown }>(taken: Promise<Connection>): Promise<Connection> {
    return new Promise((resolve, reject) => {
      let isGivenUp = false
      const limit = setTimeout(() => {
        isGivenUp = true
        const missed = `There was no connection within ${this.#longestMs} ms: nothing was sent.`
        reject(new this.#StoreError('connections_exhausted', missed))
      }, this.#longestMs).unref()
      taken
        .then((connection) => (isGivenUp ? void connection.release() : resolve(connection)), reject)
        .finally(() => clearTimeout(limit))
    })
  }

  /** At most each ten seconds. Zero if the pool is still opening a connection for the command. */
  #report(waiting: number): void {
    const now = performance.now()
    if (waiting === 0 || now < this.#reportedAt + REPORTED_EVERY_MS) return
    this.#reportedAt = now
    this.onEvent({ type: 'connections_exhausted', waiting, advice: this.#advice })
  }
}

type StoreErrorClass = new (code: 'connections_exhausted' | 'connection_lost', message: string) => Error

/** A server that is silent for this long is considered lost; otherwise TCP would keep the connection for 15 minutes. */
const SILENCE_MS = 30_000

/** Settles as what was sent does, or rejects if the server stays silent. */
export function limitSilence<Result>(sent: Promise<Result>, StoreError: StoreErrorClass): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new StoreError('connection_lost', `The database did not answer for ${SILENCE_MS} ms.`))
    }, SILENCE_MS).unref()
    sent.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** Without a listener, a broken connection would crash the process; its statement fails anyway. */
export function ignoreError(): void {}

// --- their connections

/**
 * Works on a connection that was taken from a pool, and gives it back. Unless it may be used again, `giveBack` closes it, which rolls back
 * whatever is open on it.
 */
export async function runOnConnection<Result>(
  connection: Record<'on' | 'off', (event: 'error', listener: () => void) => unknown>,
  work: () => Promise<Result>,
  isGoodAfterError: (error: unknown) => boolean | Promise<boolean>,
  giveBack: (isGood: boolean) => void,
  isGoodAfterSuccess = (_result: Result) => true,
): Promise<Result> {
  connection.on('error', ignoreError)
  let isGood = false
  try {
    const result = await work()
    isGood = isGoodAfterSuccess(result)
    return result
  } catch (error) {
    isGood = await isGoodAfterError(error)
    throw error
  } finally {
    connection.off('error', ignoreError)
    giveBack(isGood)
  }
}

// --- their sessions

/** Soon after a failover, and rare enough where the database stays read-only. */
const READ_ONLY_MS = 1_000

const READ_ONLY_SINCE = new WeakMap<object, number>()

/**
 * Whether a connection is to a server that is no primary any more: whether its session was found to be read-only, and has been for long. A
 * server that is demoted in a planned failover keeps its sessions: without a new one, a pool in use would never reach the new primary.
 */
export function isDemoted(connection: object, isReadOnly: boolean): boolean {
  if (!isReadOnly) return false
  const now = performance.now()
  const since = READ_ONLY_SINCE.get(connection) ?? now
  READ_ONLY_SINCE.set(connection, since)
  return now >= since + READ_ONLY_MS
}

// --- their results

/** Clients return `{ rows }`, the rows alone, or a list that begins with the rows; `null`: something else. */
export function findRows(result: unknown): readonly Readonly<Record<string, unknown>>[] | null {
  const rows = isObject(result) && 'rows' in result ? result.rows : result
  const list = Array.isArray(rows) && Array.isArray(rows[0]) ? rows[0] : rows
  return Array.isArray(list) && list.every(isObject) ? list : null
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
