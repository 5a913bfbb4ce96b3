// With the release of zod 3 that brings `zod/v4` too: what the other files say of events holds there as well.
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod3/v4'
import { webhookEventSchema } from '../../../src/webhooks/events/event.js'
import { merchantUpdatedEventSchema } from '../../../src/webhooks/events/merchant-updated.js'
import { runNode } from '../../../test/support/run-node.js'
import { transpiledPackage } from '../../../test/support/transpiled-package.js'
import { wholeEvent } from '../../../test/webhooks/whole-event.js'
import { installed } from '../support/installed.js'

vi.mock('zod/v4', () => import('zod3/v4'))

test('the schemas under test are made of zod 3.25', async () => {
  const newest = await vi.importActual<typeof import('zod/v4')>('zod/v4')
  const { version } = z.string()._zod
  expect(version).not.toEqual(newest.z.string()._zod.version)
  expect(webhookEventSchema._zod.version).toEqual(version)
  expect(merchantUpdatedEventSchema._zod.version).toEqual(version)
})

test('plain Node loads the entry beside zod 3.25', { timeout: 30_000 }, async () => {
  const { write, remove } = await transpiledPackage({ zod: installed('zod3') })
  onTestFinished(remove)
  const program = await write('program.mjs', PROGRAM)
  const { exitCode, stdout, stderr } = await runNode(program)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(JSON.parse(stdout)).toEqual({
    version: z.string()._zod.version,
    event: wholeEvent('merchant_updated'),
    problems: ['date', 'payload.apps[0].hasApiKey'],
  })
})

const PROGRAM = `
  import { parseWebhookEvent, webhookEventSchema } from 'once-per-key/webhooks'
  const event = parseWebhookEvent(${JSON.stringify(wholeEvent('merchant_updated'))})
  const wrong = { id: 'evt_1', type: 'merchant_updated', payload: { apps: [{ hasApiKey: 'yes' }] } }
  let problems
  try {
    parseWebhookEvent(wrong)
  } catch ({ issues }) {
    problems = issues.map(({ path }) => path)
  }
  console.log(JSON.stringify({ version: webhookEventSchema._zod.version, event, problems }))
`

describe('with zod 3.25', async () => {
  await import('../../../test/webhooks/fields.test.js')
  await import('../../../test/webhooks/event.test.js')
  await import('../../../test/webhooks/event-properties.test.js')
})
