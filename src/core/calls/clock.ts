/** In milliseconds; changes of the system's clock do not move it. */
export function monotonicNow(): number {
  return performance.now()
}

/** Keeps no process alive. */
export function startTimer(run: () => void, ms: number): NodeJS.Timeout {
  return setTimeout(run, Math.max(1, Math.ceil(ms))).unref()
}
