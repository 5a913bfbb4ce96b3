/** Milliseconds on a clock that never jumps. */
export function monotonicNow(): number {
  return performance.now()
}
