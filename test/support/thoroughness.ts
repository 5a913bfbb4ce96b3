/** `npm run test:everything` tries at its full length what `npm test` tries for seconds. */
export const THOROUGH = process.env.ONCE_PER_KEY_THOROUGH === '1'

/** What is tried: few of them each day, all of them with everything. */
export function thoroughly<T>(few: T, all: T): T {
  return THOROUGH ? all : few
}
