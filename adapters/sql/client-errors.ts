/**
 * Where clients put the database's own error (Sequelize: `parent`, TypeORM: `driverError`, Prisma: `meta`, others:
 * `cause`).
 */
const INSIDE = ['cause', 'parent', 'original', 'driverError', 'meta', 'driverAdapterError'] as const

export type Fields = Readonly<Record<string, unknown>>

/** From the outermost to the innermost error; of an AggregateError (several addresses), only the first error. */
export function withCauses(error: unknown): Fields[] {
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

/** What the client, or the database behind it, said. */
export function wordsOf(error: unknown): string {
  const innermost = withCauses(error).findLast(({ message }) => typeof message === 'string' && message !== '')
  return innermost === undefined ? 'nothing.' : String(innermost.message)
}
