import type { IdempotencyError } from 'once-per-key/core'

/** The mistakes that a constructor lists, one line each; nothing where it lists none. */
export function mistakesOf(construct: () => unknown): readonly string[] {
  try {
    construct()
  } catch (error) {
    const { code, message } = error as IdempotencyError
    if (code !== 'options_invalid') throw error
    const [list = ''] = message.split('\nSee ') // what the docs say of it
    return list.split('\n  - ').slice(1)
  }
  return []
}
