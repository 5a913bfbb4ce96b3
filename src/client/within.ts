/**
 * Resolves with the result of `work`; as soon as the time is over or the caller aborts, with the cause, even if `work`
 * ignores its signal, as the caller's own `fetch` may.
 */
export async function within<Result>(
  limitMs: number,
  callers: AbortSignal | null | undefined,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result | { readonly cause: unknown }> {
  const controller = new AbortController()
  let end!: () => void
  const over = new Promise<{ readonly cause: unknown }>((resolve) => {
    end = () => {
      const cause = callers?.reason ?? new DOMException('Timeout', 'TimeoutError')
      controller.abort(cause)
      resolve({ cause })
    }
  })
  const timer = setTimeout(end, limitMs)
  callers?.addEventListener('abort', end)
  if (callers?.aborted) end()
  try {
    return await Promise.race([over, work(controller.signal)])
  } finally {
    clearTimeout(timer)
    callers?.removeEventListener('abort', end)
  }
}
