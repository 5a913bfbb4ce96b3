import { expectOnce } from 'once-per-key/testing'
import { expect, onTestFinished, test } from 'vitest'
import { PATHS, startService } from './payments-service.js'

const CREATE = PATHS.filter((path) => path.endsWith('payout/create') || path.endsWith('order/create'))

test.each(CREATE)('%s is done once, whatever its client does', async (path) => {
  const service = await startService()
  onTestFinished(() => service.stop())
  const headers = { Authorization: 'Bearer demo_acme' }
  const { checked } = await expectOnce(service.origin, { path, headers, body: await service.sample(path) })
  expect(checked).toContain('race')
})
