/** "integer unix timestamp (seconds since epoch)" (Standard Webhooks); Stripe's is the same. */
export const UNIX_SECONDS = /^\d{1,12}$/

/** Whether a signed time differs from this machine's clock by at most so much, in either direction. */
export function isRecent(unixSeconds: string, toleranceMs: number): boolean {
  const ageSeconds = Math.floor(Date.now() / 1_000) - Number(unixSeconds)
  return Math.abs(ageSeconds) * 1_000 <= toleranceMs
}
