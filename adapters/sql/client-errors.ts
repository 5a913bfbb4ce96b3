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

/** Whether the client sends nothing in the transaction any more: Sequelize's words, where the work has called `commit` or `rollback`. */
export function isEndedByWork(error: unknown): boolean {
  return /has been called on this transaction/.test(wordsOf(error))
}

/** How often a statement is sent that the database rolls back each time, in favour of another one. */
const MOST_TRIES = 10
const FIRST_PAUSE_MS = 2

/** Sends a statement again if it failed by a conflict with another one. Rejects with what `failed` makes of the last error. */
export async function despiteConflicts<Result>(
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
