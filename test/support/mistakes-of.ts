import type { IdempotencyError } from 'once-per-key/core'

/** The mistakes that a constructor lists, one line each; nothing where it lists none. */
export function mistakesOf(construct: () => unknown): readonly string[] {
  try {
    construct()
  } catch (error) {
    const { code, message } = error as IdempotencyError
    if (code !== 'options_invalid') throw error
    return message.split('\n  - ').slice(1)
  }
  return []
}
