import { EventEmitter } from 'node:events'
import { ignoreError, isDemoted, limitSilence, type PoolTurns, runOnConnection } from '../sql/clients.js'
import { isReadOnly, isStatementRefusal, PostgresStoreError } from './errors.js'
import type { Statement, StatementValue } from './sql.js'

/** A statement as the client gets it. With a `name`, it may be prepared under it. */
export type SentStatement = Pick<Statement, 'text' | 'values'> & { readonly name?: string }

/**
 * `isUrgent`: late, it is worth nothing. `settings`: what is sent before the statement in one transaction at READ COMMITTED; `null`: the
 * statement is a transaction of its own.
 */
export type StatementSender = (statement: SentStatement, isUrgent: boolean, settings: string | null) => Promise<unknown>

/** The members of a `pg` pool that the store uses. The application opens, configures and closes the pool. */
export interface PostgresPool {
  connect(): Promise<PostgresConnection>
  readonly totalCount: number
  readonly idleCount: number
  /** How many callers wait for a connection. */
  readonly waitingCount: number
  /** Called with a connection before `connect` resolves with it. */
  on?(event: 'acquire', listener: (connection: PostgresConnection) => void): unknown
}

/** A connection from the pool. */
export interface PostgresConnection {
  query(text: string, values: StatementValue[]): Promise<unknown>
  release(broken?: boolean): void
  // biome-ignore lint/suspicious/noExplicitAny: as the listeners of Node's emitters
  on(event: 'error', listener: (error: any) => void): unknown
  // biome-ignore lint/suspicious/noExplicitAny: as the listeners of Node's emitters
  off(event: 'error', listener: (error: any) => void): unknown
}

/**
 * For any other client: sends one statement, outside any transaction, with its values unchanged (strings, `Buffer`s and
 * `null`), and resolves with `{ rows }` or the rows, bytes as `Buffer`s.
 */
export type PostgresQuery = (text: string, values: StatementValue[]) => Promise<unknown>

export const EXPECTED_POOL =
  'a Pool of `pg` (not a single Client, which blocks itself, and not a URL: `new Pool({ connectionString })`); for another ' +
  'client give `query: (text, values) => …` that resolves with { rows }'

export function isPool(value: unknown): value is PostgresPool {
  if (typeof value !== 'object' || value === null) return false
  const { connect, totalCount, waitingCount } = value as Partial<PostgresPool>
  return typeof connect === 'function' && typeof totalCount === 'number' && typeof waitingCount === 'number'
}

/** Whether the application has closed the pool or is closing it: then nothing more is sent. */
export function isEnded(pool: PostgresPool): boolean {
  const { ended, ending } = pool as { readonly ended?: boolean; readonly ending?: boolean }
  return ended === true || ending === true
}

/**
 * Sends over a pool; reports the number of waiting callers if a statement does not get a connection soon.
 * `prepares`: whether statements with a name are prepared, once for each connection.
 */
export function createPoolSender(pool: PostgresPool, turns: PoolTurns, prepares: boolean): StatementSender {
  watchErrorsFromStart(pool)
  return async (statement, isUrgent, settings) => {
    const connection = await (pool.idleCount > 0
      ? pool.connect()
      : turns.connect(
          () => pool.connect(),
          () => pool.waitingCount,
          isUrgent,
        ))
    const send = () =>
      settings === null
        ? limitQuery(sendOnConnection(connection, statement, prepares))
        : sendInTransaction(connection, settings, statement, prepares)
    const isGoodAfterError = (error: unknown) =>
      isStatementRefusal(error) &&
      !isDemoted(connection, isReadOnly(error)) &&
      (settings === null || tryRollback(connection))
    return runOnConnection(connection, send, isGoodAfterError, (isGood) => connection.release(!isGood))
  }
}

async function sendInTransaction(
  connection: PostgresConnection,
  settings: string,
  statement: SentStatement,
  prepares: boolean,
): Promise<unknown> {
  const opening = ['BEGIN ISOLATION LEVEL READ COMMITTED', settings].map((text) => ({ text, values: [] }))
  const statements = [...opening, statement, COMMIT]
  return requireResults(await sendAll(connection, statements, prepares), statements.length)[opening.length]
}

/**
 * Sends statements in turn, in one round trip where the connection can. Resolves with a result for each that was carried out, and the error
 * behind them, if any.
 */
export async function sendAll(
  connection: PostgresConnection,
  statements: readonly SentStatement[],
  prepares: boolean,
): Promise<readonly PipedResult[]> {
  if (statements.length > 1 && canPipeline(connection)) {
    const sent = prepares ? statements : statements.map(({ text, values }) => ({ text, values }))
    return limitQuery(sendPipelined(connection, sent))
  }
  const results: PipedResult[] = []
  try {
    for (const each of statements) {
      results.push((await limitQuery(sendOnConnection(connection, each, prepares))) as PipedResult)
    }
  } catch (error) {
    results.push(new FailedStatement(error))
  }
  return results
}

/** The results of the first statements that were sent. A client may have returned nothing for one. */
export function requireResults(results: readonly PipedResult[], amount: number): readonly StatementResult[] {
  const required = results.slice(0, amount)
  for (const each of required) if (each instanceof FailedStatement) throw each.error
  if (required.length < amount)
    throw new PostgresStoreError('connection_lost', 'The database did not answer the statement.')
  return required as readonly StatementResult[]
}

export const COMMIT: SentStatement = { text: 'COMMIT', values: [] }

/** Whether the rollback is certain: if not, the connection is closed, and the database rolls back. */
export async function tryRollback(connection: PostgresConnection): Promise<boolean> {
  try {
    await limitQuery(connection.query('ROLLBACK', []))
    return true
  } catch {
    return false
  }
}

export function sendOnConnection(
  connection: PostgresConnection,
  { text, values, name }: SentStatement,
  prepares: boolean,
): Promise<unknown> {
  if (!prepares || name === undefined) return connection.query(text, [...values])
  // As every version of `pg` prepares a statement.
  const preparing = connection as unknown as { query(statement: SentStatement): Promise<unknown> }
  return preparing.query({ name, text, values: [...values] })
}

/**
 * Without a listener, a session that the database ends would crash the process. `connect` resolves too late to add one: the
 * end may come in the same packet as the beginning.
 */
export function watchErrorsFromStart(pool: PostgresPool): void {
  if (WATCHED_POOLS.has(pool)) return
  WATCHED_POOLS.add(pool)
  const fresh = new Set<PostgresConnection>() // One that comes too late for many is acquired as often, at once.
  pool.on?.('acquire', (connection) => {
    if (fresh.has(connection)) return
    fresh.add(connection)
    connection.on('error', ignoreError)
    setImmediate(() => {
      fresh.delete(connection)
      connection.off('error', ignoreError) // Whoever acquired it has a listener by now.
    })
  })
}

const WATCHED_POOLS = new WeakSet<PostgresPool>()

/** Rejects if the server stays silent. */
function limitQuery<Result>(query: Promise<Result>): Promise<Result> {
  return limitSilence(query, PostgresStoreError)
}

/** The members of `pg`'s protocol object that a pipeline uses; its native client has none. */
interface Protocol {
  readonly stream: { cork?(): void; uncork?(): void }
  close(statement: { readonly type: 'S'; readonly name: string }): void
  parse(statement: { readonly text: string; readonly name: string }): void
  bind(values: { readonly statement: string; readonly values: readonly StatementValue[] }): void
  describe(portal: { readonly type: 'P'; readonly name: '' }): void
  execute(portal: { readonly portal: '' }): void
  sync(): void
}

/** What a statement of a pipeline has returned, or why it failed; those behind a failure were not carried out. */
export type PipedResult = StatementResult | FailedStatement

export interface StatementResult {
  readonly rows: readonly Record<string, unknown>[]
  readonly command: string
}

/** A class of its own, because what a client returns may have an `error`, too. */
export class FailedStatement {
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }
}

/** Whether several statements can be sent over the connection in one round trip. */
export function canPipeline(connection: PostgresConnection): boolean {
  const { connection: protocol, pipeline } = connection as {
    readonly connection?: Partial<Protocol> | null
    /** An option of the application's pool: `pg` then pipelines by itself, and takes no `Submittable`. */
    readonly pipeline?: boolean
  }
  if (typeof protocol !== 'object' || protocol === null || pipeline === true) return false
  const { close, parse, bind, describe, execute, sync } = protocol
  return [close, parse, bind, describe, execute, sync].every((each) => typeof each === 'function')
}

/** Sends statements in one round trip; those with a name are prepared. Their rows are of text alone. */
function sendPipelined(
  connection: PostgresConnection,
  statements: readonly SentStatement[],
): Promise<readonly PipedResult[]> {
  const pipeline = new Pipeline(statements, getPreparedNames(connection))
  ;(connection as unknown as { query(submittable: Pipeline): unknown }).query(pipeline)
  return pipeline.results
}

/** The names of what pipelines have prepared on a connection; not those that `pg` itself has prepared. */
function getPreparedNames(connection: PostgresConnection): Set<string> {
  let names = PREPARED.get(connection)
  if (names === undefined) {
    names = new Set()
    PREPARED.set(connection, names)
  }
  return names
}

const PREPARED = new WeakMap<PostgresConnection, Set<string>>()

/**
 * A query of `pg`, in the shape of its own `Query`: whatever stands in front of a connection, as tracers do, reads `text` and `name`, puts a
 * function around `callback`, or listens for `end` and `error`. It sends messages of the extended protocol, with one Sync behind them.
 * https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-PIPELINING
 */
class Pipeline extends EventEmitter {
  readonly results: Promise<readonly PipedResult[]>
  /** For whoever reads it: what is sent are the statements. */
  readonly text: string
  /** A tracer writes comments into the text of a query that has none, by sending a copy without our methods. */
  readonly name = 'once_per_key_pipeline'
  /** Nothing else ends the query: who put a function around it, or refused to send the query, calls it. */
  callback: (error: unknown, results?: readonly PipedResult[]) => void
  readonly #statements: readonly SentStatement[]
  readonly #prepared: Set<string>
  readonly #done: PipedResult[] = []
  #names: readonly string[] = []
  #rows: Record<string, unknown>[] = []

  constructor(statements: readonly SentStatement[], prepared: Set<string>) {
    super()
    this.#statements = statements
    this.#prepared = prepared
    this.text = statements.map(({ text }) => text).join(';\n')
    let resolve: (results: readonly PipedResult[]) => void
    this.results = new Promise((resolved) => {
      resolve = resolved
    })
    this.callback = (error) => resolve(error ? [...this.#done, new FailedStatement(error)] : this.#done)
  }

  submit(protocol: Protocol): null {
    const { stream } = protocol
    stream.cork?.()
    for (const { text, values, name: given } of this.#statements) {
      const name = toPipelineStatementName(given)
      if (!this.#prepared.has(name)) {
        // After a failure it is not known whether it was prepared; to close what is not there is no error.
        if (name !== '') protocol.close({ type: 'S', name })
        protocol.parse({ text, name })
      }
      protocol.bind({ statement: name, values })
      protocol.describe({ type: 'P', name: '' })
      protocol.execute({ portal: '' })
    }
    protocol.sync()
    stream.uncork?.()
    return null
  }

  handleRowDescription({ fields }: { readonly fields: readonly { readonly name: string }[] }): void {
    this.#names = fields.map(({ name }) => name)
  }

  handleDataRow({ fields }: { readonly fields: readonly unknown[] }): void {
    this.#rows.push(Object.fromEntries(this.#names.map((name, i) => [name, fields[i]])))
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    const name = toPipelineStatementName(this.#statements[this.#done.length]?.name)
    if (name !== '') this.#prepared.add(name)
    this.#done.push({ rows: this.#rows, command: text })
    this.#rows = []
  }

  /** Of a statement, or of the connection: then nothing follows. */
  handleError(error: unknown): void {
    this.callback(error)
    if (this.listenerCount('error') > 0) this.emit('error', error)
  }

  handleReadyForQuery(): void {
    this.callback(null, this.#done)
    this.emit('end', this.#done)
  }

  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleCopyInResponse(): void {}
  handleCopyData(): void {}
}

/** Differs from the name under which `pg` itself prepares the statement, because neither tracks the other's statements. */
function toPipelineStatementName(name: string | undefined): string {
  return name === undefined ? '' : `${name}_piped`
}
