/** How often a statement is sent that the database rolls back each time, in favour of another one. */
export const MOST_TRIES = 10
const FIRST_PAUSE_MS = 2

/** Random, so that conflicting commands do not conflict again. */
export function pauseAfter(tries: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * FIRST_PAUSE_MS * 2 ** tries))
}
