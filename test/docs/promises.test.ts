import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { buildProgram } from '../support/built-program.js'
import { engineOnTrial, outcomeOf, TIMES } from '../support/engine-on-trial.js'
import { fakeClock } from '../support/fake-clock.js'
import { request } from '../support/raw-client.js'
import { answer } from '../support/request-facts.js'

// Sentences of the README and of the pages that say where a promise ends. What is tested elsewhere: a success outside of the
// transaction (adapters/*/one-transaction), and `Retry-After` after a renewal (core/retry-after-of-a-slow-owner).

test('a process that dies between the effect and the stored response lets the next attempt run, told so', async () => {
  const clock = fakeClock()
  const store = new MemoryStore({ now: clock.now })
  const dead = engineOnTrial({}, store as never)
  await dead.run()
  clock.advance(TIMES.leaseMs)
  const next = await engineOnTrial({}, store as never).run()
  expect(next.context).toMatchObject({ attempt: 2, previousOutcome: 'unknown' })
})

test("`unknownOutcome: 'refuse'` refuses until `unknownRetentionMs` has passed, and then a retry runs as new", async () => {
  const clock = fakeClock()
  const options = { unknownOutcome: 'refuse', unknownRetentionMs: 100_000 } as const
  const trial = engineOnTrial(options, new MemoryStore({ now: clock.now }) as never)
  const failed = await trial.run()
  await failed.fail()
  clock.advance(99_999)
  expect(outcomeOf(await trial.send())).toBe('outcome_unknown')
  clock.advance(1)
  expect((await trial.run()).context).toMatchObject({ attempt: 1, previousOutcome: 'none' })
})

test('after retention the key is new, and `deriveKey` returns the same UUID as before', async () => {
  const clock = fakeClock()
  const trial = engineOnTrial({}, new MemoryStore({ now: clock.now }) as never)
  const first = await trial.run()
  await first.settle(answer())
  clock.advance(TIMES.retentionMs)
  const later = await trial.run()
  expect(later.context.previousOutcome).toBe('none')
  expect(later.context.deriveKey('payout')).toBe(first.context.deriveKey('payout'))
})

describe('on Express 4 a rejected promise that the handler does not catch', () => {
  async function start(...args: string[]) {
    const program = await buildProgram('test/support/express4-rejection.main.ts', ['express4', 'lru-cache'])
    onTestFinished(() => program.remove())
    const child = spawn(process.execPath, [program.file, ...args], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    const [port] = await once(child, 'message')
    return { child, port: port as number }
  }

  test('ends the process', async () => {
    const { child, port } = await start()
    const exited = once(child, 'exit')
    await request(port, { key: 'k', path: '/payouts' }).catch(() => {})
    expect(await exited).toEqual([1, null])
  })

  test('leaves the client waiting and the key blocked, where the process survives it', async () => {
    const { port } = await start('survives')
    const onReply = vi.fn()
    void request(port, { key: 'k', path: '/payouts' }).then(onReply, () => {})
    const blocked = await vi.waitFor(async () => {
      const retry = await request(port, { key: 'k', path: '/payouts' })
      expect(retry.status).toBe(409)
      return retry
    })
    expect(blocked.json()).toMatchObject({ code: 'in_flight' })
    expect(onReply).not.toHaveBeenCalled()
  })
})
