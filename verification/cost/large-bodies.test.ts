import { expect, test } from 'vitest'
import { timeFingerprints } from '../bench/scale/fingerprints.js'
import { ratioOf } from '../bench/statistics.js'

// Bars with room for a busy machine: no benchmark, but what has become a multiple is found.
test.each([1_024, 65_536, 2 ** 20])(
  'a fingerprint of %d bytes of JSON takes at most 3 times their JSON.parse',
  (bytes) => {
    const { fingerprint, parse } = timeFingerprints({ bytes, rounds: 15 })
    expect(ratioOf(fingerprint, parse).median).toBeLessThan(3)
  },
)
