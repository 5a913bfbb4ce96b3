import { MemoryStore } from 'once-per-key/memory'
import { runner } from 'once-per-key/run'
import { expect, test } from 'vitest'
import { ended, traces } from '../../../test/support/traces.js'
import { telemetry } from '../support/telemetry.js'

const NAME = { namespace: 'run.invoices', scope: 'acme', key: 'in_7' }
const JOB = { scope: 'acme', key: 'in_7', input: 1 }

test('a runner’s operations are told of on the channels: decisions, commands and events', async () => {
  const { claims, commands, types } = traces()
  const once = runner({ store: new MemoryStore(), name: 'invoices' })
  await once(JOB, async () => 'sent')
  await once(JOB, async () => 'never')
  await expect(once({ ...JOB, input: 2 }, async () => 'never')).rejects.toMatchObject({ code: 'mismatched' })
  expect(ended(claims)).toMatchObject([
    { ...NAME, outcome: 'run', attempt: 1, previousOutcome: 'none' },
    { ...NAME, outcome: 'replay' },
    { ...NAME, outcome: 'mismatched' },
  ])
  const runId = claims[0]?.runId
  expect(ended(commands)).toMatchObject([
    { ...NAME, command: 'begin', runId, attempt: 1, outcome: 'ok' },
    { ...NAME, command: 'complete', runId, attempt: 1, outcome: 'ok' },
    { ...NAME, command: 'begin', outcome: 'refused' },
    { ...NAME, command: 'begin', outcome: 'refused' },
  ])
  expect(types()).toEqual(['claimed', 'completed', 'run_ended', 'replayed', 'mismatched'])
})

test('a runner’s failures are told of, and how they count', async () => {
  const { commands, events } = traces()
  const once = runner({ store: new MemoryStore(), name: 'invoices' })
  await expect(once(JOB, () => Promise.reject(new Error('no reply')))).rejects.toThrow('no reply')
  expect(ended(commands)).toMatchObject([{ command: 'begin' }, { ...NAME, command: 'release', outcome: 'ok' }])
  expect(events.map(({ event }) => event)).toContainEqual(expect.objectContaining({ type: 'failed', uncertain: true }))
})

test('a runner’s decisions and commands have durations in OpenTelemetry', async () => {
  const { points } = telemetry()
  const once = runner({ store: new MemoryStore(), name: 'invoices' })
  await once(JOB, async () => 'sent')
  await once(JOB, async () => 'never')
  expect(await points('once_per_key.store.command.duration')).toEqual([
    [expect.stringContaining('begin'), expect.any(Number)],
    [expect.stringContaining('begin'), expect.any(Number)],
    [expect.stringContaining('complete'), 1],
  ])
  expect(await points('once_per_key.decisions')).toHaveLength(2)
})
