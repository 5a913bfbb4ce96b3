/** A delivery is given up after so many. */
export const MOST_TRIES = 11

const LONGEST_PAUSE = 4_320

/**
 * How long to wait after a number of tries that failed: four times as long each time, up to 4,320 times the first (6 hours
 * if that is 5 seconds). With jitter, so that deliveries which failed together do not come back together.
 */
export function pauseMsAfter(tries: number, firstPauseMs: number, random = Math.random()): number {
  return Math.round(firstPauseMs * Math.min(4 ** (tries - 1), LONGEST_PAUSE) * (0.8 + 0.4 * random))
}
