/** `npm run test:long` tries at its full length what `npm test` tries for seconds. */
const THOROUGH = process.env.ONCE_PER_KEY_TESTS === 'long'

/** `npm test`, which leaves out what takes long: see `vitest.config.ts`. */
export const EVERYDAY = process.env.ONCE_PER_KEY_TESTS === 'everyday'

/** What is tried: few of them each day, all of them in `npm run test:long`. */
export function thoroughly<T>(few: T, all: T): T {
  return THOROUGH ? all : few
}
