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
