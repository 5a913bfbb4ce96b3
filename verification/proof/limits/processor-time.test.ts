import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { processorSecondsOf } from './processor-time.js'

const USED = 'const used = () => process.cpuUsage().user + process.cpuUsage().system'

test('a process that works uses processor time, until it has ended', async () => {
  const working = spawn(process.execPath, [
    '-e',
    `${USED}; while (used() < 1e6); process.stdout.write('done'); setTimeout(() => {}, 1e9)`,
  ])
  await once(working.stdout, 'data')
  const used = await processorSecondsOf(working.pid as number)
  expect(used).toBeGreaterThanOrEqual(0.9)
  expect(used).toBeLessThan(10)
  const ended = once(working, 'exit')
  working.kill('SIGKILL')
  await ended
  expect(await processorSecondsOf(working.pid as number)).toBe(0)
})
