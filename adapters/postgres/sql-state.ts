/** Where clients put the database's own error (Sequelize `parent`, TypeORM `driverError`, Prisma `meta`, the others `cause`). */
const INSIDE = ['cause', 'parent', 'original', 'driverError', 'meta', 'driverAdapterError'] as const
/** What the code is called there (Prisma's adapters: `originalCode`). */
const NAMES = ['originalCode', 'code', 'sqlState'] as const

/** An error's SQLSTATE, wherever the client put it; `null`: it is none of the database's. */
export function sqlStateOf(error: unknown): string | null {
  for (const each of withCauses(error)) {
    for (const name of NAMES) {
      const code = each[name]
      if (typeof code === 'string' && isSqlState(code)) return code
    }
  }
  return null
}

/** An error that undid the command, and that the same command may not meet again. */
export function isSerializationFailure(error: unknown): boolean {
  const sqlState = sqlStateOf(error)
  return sqlState === '40001' || sqlState === '40P01'
}

/** Whether the connection is still good after this error: the database refused a statement, and goes on. */
export function isRefusedStatement(error: unknown): boolean {
  const sqlState = sqlStateOf(error)
  if (sqlState === null || /^(08|57P|58|XX)/.test(sqlState)) return false
  return !withCauses(error).some(({ severity }) => severity === 'FATAL' || severity === 'PANIC')
}

export function isLostConnection(error: unknown): boolean {
  return withCauses(error).some(
    ({ code, message }) =>
      (typeof code === 'string' && /^(connection_lost$|E(CONN|PIPE|TIMEDOUT|HOST|NET)|CONNECTION_)/.test(code)) ||
      /connection (terminated|ended|closed)|terminating connection|not queryable/i.test(String(message)),
  )
}

/** Of `pg`'s pool, where `connectionTimeoutMillis` is set. */
export function isPoolTimeout(error: unknown): boolean {
  return withCauses(error).some(({ message }) => /timeout exceeded when trying to connect/i.test(String(message)))
}

export function wordsOf(error: unknown): string {
  const innermost = withCauses(error).findLast(({ message }) => typeof message === 'string' && message !== '')
  return innermost === undefined ? 'nothing.' : String(innermost.message)
}

type Fields = Readonly<Record<string, unknown>>

/** From the outermost to the innermost; an AggregateError of several addresses stands for the first of them. */
function withCauses(error: unknown): Fields[] {
  const found: Fields[] = []
  const waiting = [error]
  while (waiting.length > 0 && found.length < 10) {
    const next = waiting.shift()
    if (typeof next !== 'object' || next === null || found.includes(next as Fields)) continue
    const fields = next as Fields
    found.push(fields)
    waiting.push(...INSIDE.map((name) => fields[name]), Array.isArray(fields.errors) ? fields.errors[0] : undefined)
  }
  return found
}

/** Five digits and capitals with a digit among them; Prisma's own codes (P1001 …) and Node's (EPIPE) look alike. */
function isSqlState(code: string): boolean {
  return /^(?=.*\d)[0-9A-Z]{5}$/.test(code) && !/^P[1-6]\d{3}$/.test(code)
}
