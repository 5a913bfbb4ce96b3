import { withCauses } from '../sql/clients.js'

/** The names of its code there (Prisma's adapters: `originalCode`). */
const NAMES = ['originalCode', 'code', 'sqlState'] as const

/** The SQLSTATE of an error, wherever the client put it; `null` if the error is not the database's. */
export function sqlStateOf(error: unknown): string | null {
  for (const each of withCauses(error)) {
    for (const name of NAMES) {
      const code = each[name]
      if (typeof code === 'string' && isSqlState(code)) return code
    }
  }
  return null
}

/** An error that rolled the command back, and that a retry of the same command may not meet. */
export function isSerializationFailure(error: unknown): boolean {
  const sqlState = sqlStateOf(error)
  return sqlState === '40001' || sqlState === '40P01'
}

/** Whether the connection is still usable after this error: the database refused one statement. */
export function isRefusedStatement(error: unknown): boolean {
  const sqlState = sqlStateOf(error)
  if (sqlState === null || /^(08|57P|58|XX)/.test(sqlState)) return false
  return !withCauses(error).some(({ severity }) => severity === 'FATAL' || severity === 'PANIC')
}

export function isLostConnection(error: unknown): boolean {
  return withCauses(error).some(
    ({ code, message }) =>
      (typeof code === 'string' &&
        /^(connection_lost$|transaction_timed_out$|E(CONN|PIPE|TIMEDOUT|HOST|NET)|CONNECTION_)/.test(code)) ||
      /connection (terminated|ended|closed)|terminating connection|not queryable/i.test(String(message)),
  )
}

/** Thrown by `pg`'s pool if `connectionTimeoutMillis` is set. */
export function isPoolTimeout(error: unknown): boolean {
  return withCauses(error).some(({ message }) => /timeout exceeded when trying to connect/i.test(String(message)))
}

/** Five digits and capitals, with at least one digit. Prisma's own codes (P1001 …) and Node's (EPIPE) look similar. */
function isSqlState(code: string): boolean {
  return /^(?=.*\d)[0-9A-Z]{5}$/.test(code) && !/^P[1-6]\d{3}$/.test(code)
}
