/**
 * Resolves with the result of `work`. Rejects as soon as the time is over or the caller aborts, even if `work` ignores
 * its signal, as the caller's own `fetch` may.
 */
export async function within<Result>(
  limitMs: number,
  callers: AbortSignal | null | undefined,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController()
  const { signal } = controller
  const end = () => controller.abort(callers?.aborted ? callers.reason : new DOMException('Too late', 'TimeoutError'))
  const timer = setTimeout(end, limitMs)
  callers?.addEventListener('abort', end)
  const over = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
  })
  if (callers?.aborted) end()
  try {
    return await Promise.race([over, work(signal)])
  } finally {
    clearTimeout(timer)
    callers?.removeEventListener('abort', end)
  }
}

/** Ends early if the caller aborts. */
export function pause(ms: number, callers: AbortSignal | null | undefined): Promise<void> {
  return within(ms, callers, () => new Promise<void>(() => {})).catch(() => {})
}
