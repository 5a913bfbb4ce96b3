import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'tsup'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Late, ownPulse, Pulse } from './pulse.js'

const NEVER = new Promise<never>(() => {})
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'once-per-key-pulse-'))
  await writeFile(
    join(folder, 'child.ts'),
    `import { answerBeats } from '${join(import.meta.dirname, 'pulse.js')}'\nanswerBeats()\nprocess.send('ready')`,
  )
  await build({
    entry: [join(folder, 'child.ts')],
    outDir: folder,
    format: 'esm',
    outExtension: () => ({ js: '.mjs' }),
    config: false,
    silent: true,
  })
}, 60_000)
afterAll(() => rm(folder, { recursive: true }))

test('what comes within the limit is what it is, and what does not is late', async () => {
  expect(await ownPulse.within(1, 'here')).toBe('here')
  await expect(ownPulse.within(1, Promise.reject(new Error('no')))).rejects.toThrow('no')
  await expect(ownPulse.within(2, NEVER)).rejects.toBeInstanceOf(Late)
})

test('a process that is stopped has no beats, and one that has ended hands over to those of its parent', async () => {
  const child = fork(join(folder, 'child.mjs'))
  await once(child, 'message')
  const pulse = new Pulse(child)
  await expect(pulse.within(3, NEVER)).rejects.toBeInstanceOf(Late)
  child.kill('SIGSTOP')
  // One beat may have left before.
  await ownPulse.within(4, NEVER).catch(() => {})
  const { beats } = pulse
  await ownPulse.within(4, NEVER).catch(() => {})
  expect(pulse.beats).toBe(beats)
  const late = pulse.within(3, NEVER)
  child.kill('SIGKILL')
  await expect(late).rejects.toBeInstanceOf(Late)
})
