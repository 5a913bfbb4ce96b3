import { expect, test } from 'vitest'
import { MOST_TRIES, pauseMsAfter } from '../../examples/payments/webhook-pauses.js'

const HOUR_MS = 3_600_000
const pauses = (random?: number) => Array.from({ length: MOST_TRIES - 1 }, (_, i) => pauseMsAfter(i + 1, 5_000, random))

test('pauses grow from seconds to hours, and take about a day', () => {
  expect(pauses(0.5).map((ms) => ms / 1_000)).toEqual([5, 20, 80, 320, 1280, 5120, 20480, 21600, 21600, 21600])
  const sum = pauses(0.5).reduce((total, ms) => total + ms, 0)
  expect(Math.round(sum / HOUR_MS)).toBe(26)
})

test('each is a fifth shorter or longer, by chance', () => {
  expect([0, 0.5, 1].map((random) => pauseMsAfter(1, 1_000, random))).toEqual([800, 1_000, 1_200])
  expect(new Set(Array.from({ length: 20 }, () => pauseMsAfter(1, 1_000))).size).toBeGreaterThan(1)
})
