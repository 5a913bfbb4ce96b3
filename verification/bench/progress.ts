/** One line that says what is measured now, rewritten on a terminal, and a line every ten seconds elsewhere. */
export interface Progress {
  tell(what: string): void
  end(): void
}

export function startProgress(): Progress {
  const { stderr } = process
  const startedAt = performance.now()
  let lastAt = Number.NEGATIVE_INFINITY
  return {
    tell(what) {
      const now = performance.now()
      const line = `${((now - startedAt) / 1_000).toFixed(0).padStart(4)} s  ${what}`
      if (stderr.isTTY) stderr.write(`\r\x1b[K${line.slice(0, (stderr.columns ?? 80) - 1)}`)
      else if (now - lastAt > 10_000) {
        stderr.write(`${line}\n`)
        lastAt = now
      }
    },
    end() {
      if (stderr.isTTY) stderr.write('\r\x1b[K')
    },
  }
}
