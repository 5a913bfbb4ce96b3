/** Milliseconds of a monotonic clock. */
export function monotonicNow(): number {
  return performance.now()
}
