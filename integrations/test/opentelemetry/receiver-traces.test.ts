import { expect, test } from 'vitest'
import { BINDINGS } from '../../../test/support/bindings.js'
import { deliver, receive } from '../../../test/support/deliveries.js'
import { ended, traces } from '../../../test/support/traces.js'
import { telemetry } from '../support/telemetry.js'

const NAME = { namespace: 'webhook', scope: 'payments', key: 'evt_1' }

test('a receiver’s events are told of on the channels: decisions, commands and events', async () => {
  const { claims, commands, types } = traces()
  const { port } = await receive(BINDINGS[0] as (typeof BINDINGS)[0])
  expect((await deliver(port)).status).toBe(200)
  expect((await deliver(port)).status).toBe(200)
  expect(ended(claims)).toMatchObject([
    { ...NAME, outcome: 'run', attempt: 1, previousOutcome: 'none' },
    { ...NAME, outcome: 'replay' },
  ])
  const runId = claims[0]?.runId
  expect(ended(commands)).toMatchObject([
    { ...NAME, command: 'begin', runId, attempt: 1, outcome: 'ok' },
    { ...NAME, command: 'complete', runId, attempt: 1, outcome: 'ok' },
    { ...NAME, command: 'begin', outcome: 'refused' },
  ])
  expect(types()).toEqual(['claimed', 'completed', 'run_ended', 'replayed'])
})

test('a handler that throws is told of, and how it counts, also in OpenTelemetry', async () => {
  const { commands, events } = traces()
  const { points } = telemetry()
  const handler = () => {
    throw new Error('the books are closed')
  }
  const { port } = await receive(BINDINGS[0] as (typeof BINDINGS)[0], { handler })
  expect((await deliver(port)).status).toBe(500)
  expect(ended(commands)).toMatchObject([{ command: 'begin' }, { ...NAME, command: 'release', outcome: 'ok' }])
  expect(events.map(({ event }) => event)).toContainEqual(expect.objectContaining({ type: 'failed', uncertain: true }))
  expect(await points('once_per_key.decisions')).toEqual([['namespace=webhook outcome=run previous_outcome=none', 1]])
})
