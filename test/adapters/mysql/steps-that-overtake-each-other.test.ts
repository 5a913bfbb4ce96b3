import { runner } from 'once-per-key/run'
import { expect, test, vi } from 'vitest'
import { openStore } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

test('a hundred steps side by side are all recorded', async () => {
  const { store } = await openStore()
  const once = runner({ store, name: 'pages' })
  const pages = Array.from({ length: 100 }, (_, page) => page)
  const seen = await once({ scope: 'acme', key: 'k', input: null }, async (context) => {
    const steps = await Promise.allSettled(pages.map((page) => context.step(`page ${page}`, () => page)))
    return steps.map((step) => (step.status === 'fulfilled' ? step.value : step.reason.code))
  })
  expect(seen).toEqual(pages)
})
