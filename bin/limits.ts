/** How long the command waits for a connection, in milliseconds. */
export const CONNECT_MS = 5_000
/**
 * How long it waits for the reply to one command, in milliseconds: longer than a request does. What is sent by the
 * engine of `operator.ts` has the same limit there.
 */
export const REPLY_MS = 7_000
/** For drivers, which would answer at the same time otherwise: they say less than the engine. */
export const DRIVER_MS = REPLY_MS + 500
/** How long it waits for a client to close, and then for the process to end, in milliseconds. */
export const CLOSE_MS = 2_000

/** What the promise resolves with. @throws an error that says what did not come in time. */
export async function awaitWithTimeLimit<Result>(ms: number, promise: Promise<Result>, what: string): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} within ${ms / 1_000} s.`)), ms)
  })
  try {
    return await Promise.race([promise, over])
  } finally {
    clearTimeout(timer)
  }
}

/** Closes a client, unless its server keeps it from that. */
export async function closeWithinLimit(close: () => Promise<void>): Promise<void> {
  await awaitWithTimeLimit(CLOSE_MS, close(), 'The client did not close').catch(() => {})
}

/** Why it failed, in words: drivers leave the message of an error empty that stands for several, and keep causes apart. */
export function describeError(error: unknown): string {
  // A module may throw anything.
  const { errors, message, code, lastNodeError } = (error ?? {}) as {
    readonly errors?: unknown
    readonly message?: unknown
    code?: unknown
    lastNodeError?: unknown
  }
  if (Array.isArray(errors) && errors.length > 0) return [...new Set(errors.map(describeError))].join('; ')
  if (lastNodeError !== undefined) return `${message} ${describeError(lastNodeError)}`
  return String(message || code || error)
}
