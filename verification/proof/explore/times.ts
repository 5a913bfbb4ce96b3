/**
 * Short, and multiples of 50 ms like the library's own pauses, so that the instants at which something is due are few:
 * a renewal every 200 ms, a lapse after 600 ms, a command for 150 ms. The retention outlasts every path.
 */
export const TIMES = { storeTimeoutMs: 150, leaseMs: 600, maxRunMs: 600, retentionMs: 1_000_000 } as const

/** How long a certain failure is kept. */
export const FAILED_MS = TIMES.maxRunMs + TIMES.leaseMs
