import { computeRequestFingerprint } from '../../../src/http/request/request-fingerprint.js'
import { orderOf } from '../payout.js'

const SLICE_BYTES = 4 * 2 ** 20
const WARM_UP_ROUNDS = 3

/** CPU time for one body, in milliseconds, in each round. */
export type FingerprintTimes = {
  /** Of a fingerprint by value. */
  readonly fingerprint: readonly number[]
  /** Of `JSON.parse` of the same body's text. */
  readonly parse: readonly number[]
}

/** In slices that alternate, so that what slows the machine for a while slows both. */
export function timeFingerprints({ bytes, rounds }: { readonly bytes: number; readonly rounds: number }) {
  const text = orderOf(bytes)
  const body = JSON.parse(text)
  const times = { fingerprint: [] as number[], parse: [] as number[] } satisfies FingerprintTimes
  for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
    const fingerprint = timeSlice(bytes, () => computeRequestFingerprint('POST', '/payouts', body))
    const parse = timeSlice(bytes, () => JSON.parse(text))
    if (round < 0) continue
    times.fingerprint.push(fingerprint)
    times.parse.push(parse)
  }
  return times
}

function timeSlice(bytes: number, work: () => unknown): number {
  const times = Math.ceil(SLICE_BYTES / bytes)
  const before = process.cpuUsage()
  for (let i = 0; i < times; i++) work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000 / times
}
