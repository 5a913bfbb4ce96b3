import {
  CertainFailure,
  createOperationEngine,
  type EngineEvent,
  fingerprintOf,
  type Run,
  type Store,
} from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { gate } from '../support/gate.js'

const TIMES = { leaseMs: 12_000, storeTimeoutMs: 1_000, maxRunMs: 60_000, retentionMs: 3_600_000 }
const ANSWER = { status: 200, statusMessage: '', headers: [], body: Buffer.from('{}') }

/** What the store does with each `step`, in place of recording it: `'lose'` its reply, or let it fail before. */
type Trouble = 'lose' | 'fail' | 'hang' | undefined

function stage(options: object = {}, store: Store = new MemoryStore()) {
  const events: EngineEvent[] = []
  const commands: string[] = []
  const trouble: { next: Trouble[] } = { next: [] }
  const held: (() => void)[] = []
  const spied: Store = {
    begin: (key, claim) => {
      commands.push('begin')
      return store.begin(key, claim)
    },
    renew: (key, own) => store.renew(key, own),
    complete: (key, own) => {
      commands.push('complete')
      return store.complete(key, own)
    },
    release: (key, own) => {
      commands.push('release')
      return store.release(key, own)
    },
    inspect: (key) => store.inspect?.(key) ?? null,
    resolve: (key, resolution) => store.resolve?.(key, resolution) ?? { ok: false, record: null },
    ...(store.step && {
      step: async (key: string, own: Parameters<NonNullable<Store['step']>>[1]) => {
        commands.push(`${own.label} ${own.state}`)
        const kind = trouble.next.shift()
        if (kind === 'fail') throw new Error('away')
        if (kind === 'hang') await new Promise<void>((resolve) => held.push(resolve))
        const reply = await (store.step as NonNullable<Store['step']>)(key, own)
        if (kind === 'lose') throw new Error('reply lost')
        return reply
      },
    }),
  }
  const engine = createOperationEngine({ store: spied, onEvent: (event) => events.push(event), ...TIMES, ...options })
  const identity = { namespace: 'n', scope: 's', key: 'k', fingerprint: fingerprintOf(1) }
  return {
    events,
    commands,
    trouble,
    held,
    engine,
    spied,
    types: () => events.map(({ type }) => type),
    inspect: () => engine.inspect(identity),
    resolve: (attempt: number) => engine.resolve(identity, attempt, null),
    claim: () => engine.claim(identity),
    async run(): Promise<Run> {
      const claimed = await engine.claim(identity)
      if (claimed.action !== 'execute') throw new Error(`refused: ${JSON.stringify(claimed)}`)
      return claimed.run
    },
  }
}

const code = (expected: string) => expect.objectContaining({ code: expected })

describe('a step', () => {
  test('is called once: a later attempt goes on with its result, without a command', async () => {
    const { run, commands, types } = stage()
    const work = vi.fn(() => ({ id: 'ch_1', none: undefined }))
    const first = await run()
    expect(await first.context.step('charge', work)).toEqual({ id: 'ch_1' })
    await first.fail('perhaps', 'no_answer')
    expect(commands).toEqual(['begin', 'charge begun', 'charge done', 'release'])
    commands.length = 0

    const second = await run()
    expect(await second.context.step('charge', work)).toEqual({ id: 'ch_1' })
    expect(work).toHaveBeenCalledTimes(1)
    expect(await second.context.step('ship', ({ previousOutcome }) => previousOutcome)).toBe('none')
    await second.complete(ANSWER)
    expect(commands).toEqual(['begin', 'ship begun', 'ship done', 'complete'])
    expect(types().filter((type) => type.startsWith('step'))).toEqual(['step_done', 'step_resumed', 'step_done'])
  })

  test('gets its key, its label, and the signal', async () => {
    const first = await stage().run()
    await first.context.step('charge', (step) => {
      expect(step).toEqual({
        key: first.context.deriveKey('charge'),
        label: 'charge',
        previousOutcome: 'none',
        signal: first.context.signal,
      })
      return null
    })
  })

  test('that began and left no result is told so in the next attempt, and again in this one', async () => {
    const { run } = stage()
    const first = await run()
    const dies = () => Promise.reject(new Error('timeout'))
    await expect(first.context.step('charge', dies)).rejects.toThrow('timeout')
    expect(await first.context.step('charge', ({ previousOutcome }) => previousOutcome)).toBe('unknown')
    await first.fail('certainly', 'refused')
    const second = await run()
    expect(second.previousOutcome).toBe('unknown')
    expect(await second.context.step('charge', ({ previousOutcome }) => previousOutcome)).toBe('unknown')
  })

  test('that is declined is taken back: the run may fail with certainty', async () => {
    const { run, inspect, commands } = stage()
    const first = await run()
    const declined = new CertainFailure('declined')
    await expect(first.context.step('charge', () => Promise.reject(declined))).rejects.toBe(declined)
    await first.fail('certainly', 'certain_failure')
    expect(commands).toEqual(['begin', 'charge begun', 'charge undone', 'release'])
    expect(await inspect()).toMatchObject({ state: 'failed', uncertain: false })
  })

  test('whose beginning is of a dead attempt is not taken back', async () => {
    const { run, inspect, commands } = stage()
    const first = await run()
    await expect(first.context.step('charge', () => Promise.reject(new Error('dies')))).rejects.toThrow('dies')
    await first.fail('perhaps', 'no_answer')
    const second = await run()
    const declined = new CertainFailure('declined')
    await expect(second.context.step('charge', () => Promise.reject(declined))).rejects.toBe(declined)
    expect(commands).not.toContain('charge undone')
    await second.fail('certainly', 'certain_failure')
    expect(await inspect()).toMatchObject({ uncertain: true, steps: [{ label: 'charge', state: 'begun' }] })
  })

  test('in which another began is not taken back', async () => {
    const { run, commands } = stage()
    const first = await run()
    const outer = first.context.step('outer', async () => {
      await first.context.step('inner', () => 1)
      throw new CertainFailure('no')
    })
    await expect(outer).rejects.toThrow('no')
    expect(commands).not.toContain('outer undone')
  })

  test('in which another is about to begin is not taken back, unless that one does not begin', async () => {
    const { run, commands, trouble, held } = stage({ storeTimeoutMs: 50 })
    const first = await run()
    for (const [outer, inner, isRecorded] of [['a', 'b', true] as const, ['c', 'd', false] as const]) {
      trouble.next = [undefined, isRecorded ? 'hang' : 'fail']
      let later: Promise<unknown> = Promise.resolve()
      const declined = first.context.step(outer, async () => {
        later = first.context.step(inner, () => 1)
        if (!isRecorded) await expect(later).rejects.toEqual(code('store_failed'))
        throw new CertainFailure('no')
      })
      await expect(declined).rejects.toThrow('no')
      held.shift()?.()
      expect((await Promise.allSettled([later]))[0]?.status).toBe(isRecorded ? 'fulfilled' : 'rejected')
    }
    expect(commands).not.toContain('a undone')
    expect(commands).toContain('c undone')
  })

  test('beside which another began is taken back, and the outcome stays unknown', async () => {
    const { run, inspect, commands } = stage()
    const first = await run()
    const begun = gate()
    const charge = first.context.step('charge', async () => {
      await begun.opened
      throw new CertainFailure('declined')
    })
    const ship = first.context.step('ship', async () => {
      begun.open()
      await expect(charge).rejects.toThrow('declined')
      return 'shipped'
    })
    expect(await ship).toBe('shipped')
    expect(commands).toContain('charge undone')
    await first.fail('certainly', 'certain_failure')
    expect(await inspect()).toMatchObject({ uncertain: true, steps: [{ label: 'ship', state: 'done' }] })
    const again = await run()
    expect(await again.context.step('charge', ({ previousOutcome }) => previousOutcome)).toBe('none')
  })

  test('leaves the outcome of a failure unknown, however that is judged', async () => {
    const { run, inspect } = stage({ effects: 'declared' })
    const first = await run()
    await first.context.step('charge', () => 1)
    await first.fail('certainly', 'refused')
    expect(await inspect()).toMatchObject({ uncertain: true, steps: [{ label: 'charge', state: 'done' }] })
  })
})

describe('misuse', () => {
  test.each(['', 'x'.repeat(101), 'a\nb', 'a\u0085b', '\ud800', 7])('a label %j: label_invalid', async (label) => {
    const { run, commands } = stage()
    const work = vi.fn()
    await expect((await run()).context.step(label as string, work)).rejects.toEqual(code('label_invalid'))
    expect(work).not.toHaveBeenCalled()
    expect(commands).toEqual(['begin'])
  })

  test('a label of 100 characters is none, whichever characters', async () => {
    const { context } = await stage().run()
    expect(await context.step('€'.repeat(100), () => 1)).toBe(1)
    expect(await context.step('🧾'.repeat(100), () => 2)).toBe(2)
    await expect(context.step('🧾'.repeat(101), () => 3)).rejects.toEqual(code('label_invalid'))
  })

  test('work that is no function: arguments_invalid', async () => {
    const { run, commands } = stage()
    await expect((await run()).context.step('a', 'work' as never)).rejects.toEqual(code('arguments_invalid'))
    expect(commands).toEqual(['begin'])
  })

  test('an option that step does not have: options_invalid', async () => {
    const work = vi.fn()
    const step = (await stage().run()).context.step('a', work, { results: { encode: String, decode: String } } as never)
    await expect(step).rejects.toEqual(code('options_invalid'))
    await expect(step).rejects.toThrow('did you mean result?')
    expect(work).not.toHaveBeenCalled()
  })

  test.each([null, {}, 7])('a codec that is %j: arguments_invalid', async (result) => {
    const work = vi.fn()
    const step = (await stage().run()).context.step('a', work, { result } as never)
    await expect(step).rejects.toEqual(code('arguments_invalid'))
    expect(work).not.toHaveBeenCalled()
  })

  test('a label that is running, or has succeeded: step_repeated', async () => {
    const { context } = await stage().run()
    const both = [context.step('a', () => 1), context.step('a', () => 2)]
    expect(await Promise.allSettled(both)).toMatchObject([{ value: 1 }, { reason: { code: 'step_repeated' } }])
    await expect(context.step('a', () => 3)).rejects.toEqual(code('step_repeated'))
  })

  test('after the end: step_late', async () => {
    const first = await stage().run()
    await first.context.step('done', () => 1)
    await first.complete(ANSWER)
    for (const label of ['a', 'done'])
      await expect(first.context.step(label, () => 1)).rejects.toEqual(code('step_late'))
  })

  test('the 101st: step_limit', async () => {
    const { context } = await stage().run()
    for (let i = 0; i < 100; i++) await context.step(`step ${i}`, () => i)
    await expect(context.step('one more', () => 1)).rejects.toEqual(code('step_limit'))
  })

  test('a store without it: command_missing, and everything else works', async () => {
    const { begin, renew, complete, release } = new MemoryStore()
    const bare = new MemoryStore()
    const store: Store = {
      begin: begin.bind(bare),
      renew: renew.bind(bare),
      complete: complete.bind(bare),
      release: release.bind(bare),
    }
    const first = await stage({}, store).run()
    const work = vi.fn()
    await expect(first.context.step('a', work)).rejects.toEqual(code('command_missing'))
    expect(work).not.toHaveBeenCalled()
    expect(await first.complete(ANSWER)).toEqual({ action: 'send' })
  })
})

describe('a result', () => {
  test('that is no JSON: step_result_invalid, and the step stays begun', async () => {
    const { run, inspect } = stage()
    const first = await run()
    const given = first.context.step('a', () => new Map() as never)
    await expect(given).rejects.toEqual(code('step_result_invalid'))
    expect(await inspect()).toMatchObject({ steps: [{ label: 'a', state: 'begun' }] })
  })

  test('of another type is encoded, and decoded for the first caller, too', async () => {
    const { run } = stage()
    const result = { encode: (date: Date) => date.toISOString(), decode: (text: Buffer) => new Date(`${text}`) }
    const made = new Date(0)
    const first = await run()
    const got = await first.context.step('a', () => made, { result })
    expect(got).toEqual(made)
    expect(got).not.toBe(made)
    await first.fail('perhaps', 'no_answer')
    expect(await (await run()).context.step('a', () => new Date(1), { result })).toEqual(made)
  })

  test.each<[string, () => unknown]>([
    ['an array of numbers', () => [1, 2]],
    ['a promise that rejects', () => Promise.reject(new Error('late'))],
  ])('that is encoded as %s: step_result_invalid, and the step stays begun', async (_kind, encode) => {
    const { run, inspect } = stage()
    const result = { encode: encode as () => string, decode: () => null }
    const given = (await run()).context.step('a', () => null, { result })
    await expect(given).rejects.toEqual(code('step_result_invalid'))
    expect(await inspect()).toMatchObject({ steps: [{ label: 'a', state: 'begun' }] })
  })

  test('above maxStepBytes is done, not kept: a later attempt rejects, and its outcome stays unknown', async () => {
    const { run, inspect } = stage({ maxStepBytes: 3 })
    const first = await run()
    expect(await first.context.step('a', () => 'abc')).toBe('abc')
    await first.fail('perhaps', 'no_answer')
    const second = await run()
    const work = vi.fn()
    await expect(second.context.step('a', work)).rejects.toEqual(code('step_not_kept'))
    expect(work).not.toHaveBeenCalled()
    await second.fail('certainly', 'refused')
    expect(await inspect()).toMatchObject({ uncertain: true, steps: [{ label: 'a', state: 'done' }] })
  })
})

describe('where the store is away', () => {
  test('before: store_failed, the work is not called, and the step may be tried again', async () => {
    const { run, trouble } = stage()
    const first = await run()
    trouble.next = ['fail']
    const work = vi.fn(() => 1)
    await expect(first.context.step('a', work)).rejects.toEqual(code('store_failed'))
    expect(work).not.toHaveBeenCalled()
    expect(await first.context.step('a', work)).toBe(1)
  })

  test('after: the run goes on, its result follows, and the next step waits for it', async () => {
    const { run, trouble, commands, types } = stage()
    const first = await run()
    trouble.next = [undefined, 'fail', 'fail']
    expect(await first.context.step('charge', () => 1)).toBe(1)
    expect(types()).toContain('step_pending')
    expect(await first.context.step('ship', () => 2)).toBe(2)
    expect(commands.indexOf('ship begun')).toBeGreaterThan(commands.lastIndexOf('charge done'))
    expect(types().filter((type) => type === 'step_done')).toHaveLength(2)
  })

  test('for longer than a command may take: the next step is not called', async () => {
    const { run, trouble } = stage({ storeTimeoutMs: 50 })
    const first = await run()
    trouble.next = [undefined, 'fail', 'fail', 'fail', 'fail', 'fail', 'fail', 'fail', 'fail']
    await first.context.step('charge', () => 1)
    const work = vi.fn()
    await expect(first.context.step('ship', work)).rejects.toEqual(code('store_failed'))
    expect(work).not.toHaveBeenCalled()
  })

  test('while another step begins: that one is not called before the result was confirmed, and no timer keeps the process alive', async () => {
    const { run, trouble, held, commands } = stage({ storeTimeoutMs: 100 })
    const first = await run()
    trouble.next = [undefined, 'hang', ...Array<Trouble>(9).fill('fail')]
    const charged = first.context.step('charge', () => 1)
    await new Promise(setImmediate)
    expect(commands.at(-1)).toBe('charge done')
    const work = vi.fn()
    const timers = vi.spyOn(globalThis, 'setTimeout')
    const shipped = expect(first.context.step('ship', work)).rejects.toEqual(code('store_failed'))
    expect(timers.mock.results.map(({ value }) => value.hasRef())).toEqual([false])
    timers.mockRestore()
    await shipped
    expect(commands).not.toContain('ship begun')
    expect(await charged).toBe(1)
    for (const release of held) release()
  })

  test('until maxRunMs is over: a result is given up, and no step is recorded after it, though the lease still holds', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const { run, trouble, held, commands } = stage()
    const first = await run()
    await vi.advanceTimersByTimeAsync(TIMES.maxRunMs - 500)
    trouble.next = [undefined, 'hang', 'hang']
    const charged = first.context.step('charge', () => 1)
    await vi.advanceTimersByTimeAsync(TIMES.storeTimeoutMs)
    expect(await charged).toBe(1)
    const work = vi.fn()
    await expect(first.context.step('ship', work)).rejects.toEqual(code('store_failed'))
    expect(work).not.toHaveBeenCalled()
    expect(commands).not.toContain('ship begun')
    for (const release of held) release()
  })

  test('and has lost the record: it is restored with all results of this run', async () => {
    const store = new MemoryStore()
    const { run, inspect } = stage({}, store)
    const first = await run()
    await first.context.step('charge', () => 1)
    store.clear()
    await first.context.step('ship', () => 2)
    await vi.waitFor(async () =>
      expect(await inspect()).toMatchObject({
        state: 'in-flight',
        uncertain: true,
        steps: expect.arrayContaining([{ label: 'charge', state: 'done' }]),
      }),
    )
  })

  test('and has lost the record: a result that is not confirmed then is sent until it is', async () => {
    const store = new MemoryStore()
    const { run, inspect, trouble } = stage({}, store)
    const first = await run()
    await first.context.step('charge', () => 1)
    store.clear()
    // The mark of `ship` restores the record, and the result of `charge` follows it.
    trouble.next = [undefined, 'fail']
    await first.context.step('ship', () => 2)
    const steps = expect.arrayContaining([
      { label: 'charge', state: 'done' },
      { label: 'ship', state: 'done' },
    ])
    await vi.waitFor(async () => expect(await inspect()).toMatchObject({ state: 'in-flight', steps }))
  })

  test('and has lost the record, which a mark restores that is answered too late: results are sent again all the same', async () => {
    const store = new MemoryStore()
    const { run, inspect, trouble, held } = stage({ storeTimeoutMs: 50 }, store)
    const first = await run()
    await first.context.step('charge', () => 1)
    store.clear()
    trouble.next = ['hang']
    await expect(first.context.step('ship', () => 2)).rejects.toEqual(code('store_failed'))
    for (const release of held) release()
    const steps = expect.arrayContaining([
      { label: 'charge', state: 'done' },
      { label: 'ship', state: 'begun' },
    ])
    await vi.waitFor(async () => expect(await inspect()).toMatchObject({ state: 'in-flight', steps }))
  })

  test('and has lost the record, with a mark that it has not confirmed yet: that is sent again too', async () => {
    const store = new MemoryStore()
    let confirm = (): void => {}
    const confirmed = new Promise<void>((resolve) => {
      confirm = resolve
    })
    let charge = (_value: number): void => {}
    const charging = new Promise<number>((resolve) => {
      charge = resolve
    })
    const record = store.step.bind(store)
    vi.spyOn(store, 'step').mockImplementation((key, own) => {
      const reply = record(key, own)
      return own.label === 'ship' && own.order === 2 ? confirmed.then(() => reply) : reply
    })
    const { run, inspect, commands } = stage({}, store)
    const first = await run()
    const charged = first.context.step('charge', () => charging)
    await vi.waitFor(() => expect(commands).toContain('charge begun'))
    const shipped = first.context.step('ship', () => 2)
    await vi.waitFor(() => expect(commands).toContain('ship begun'))
    store.clear()
    charge(1)
    await charged
    const steps = expect.arrayContaining([
      { label: 'charge', state: 'done' },
      { label: 'ship', state: 'begun' },
    ])
    await vi.waitFor(async () => expect(await inspect()).toMatchObject({ state: 'in-flight', steps }))
    confirm()
    await shipped
  })
})

describe('a renewal that restores a claim which the store had lost', () => {
  test('is followed by the steps of the run, and by those that an earlier attempt has recorded', async () => {
    const store = new MemoryStore()
    const { run, inspect } = stage({ leaseMs: 300, storeTimeoutMs: 50 }, store)
    const first = await run()
    await first.context.step('charge', () => 1)
    await first.fail('perhaps', 'no_answer')
    const second = await run()
    await second.context.step('ship', () => 2)
    store.clear()
    const steps = expect.arrayContaining([
      { label: 'charge', state: 'done' },
      { label: 'ship', state: 'done' },
    ])
    await vi.waitFor(async () => expect(await inspect()).toMatchObject({ state: 'in-flight', uncertain: true, steps }))
    await second.fail('perhaps', 'no_answer')
    const third = await run()
    const work = vi.fn()
    expect([await third.context.step('charge', work), await third.context.step('ship', work)]).toEqual([1, 2])
    expect(work).not.toHaveBeenCalled()
  })
})

describe('an operator', () => {
  test('lets an operation go on with its steps whose unknown outcome is refused, once', async () => {
    const { run, claim, engine, inspect, events } = stage({ unknownOutcome: 'refuse' })
    const identity = { namespace: 'n', scope: 's', key: 'k' }
    const first = await run()
    await first.context.step('charge', () => 1)
    await first.fail('perhaps', 'no_answer')
    expect(await claim()).toMatchObject({ code: 'outcome_unknown' })
    expect(await engine.resolve(identity, 1, 'rerun')).toEqual({ ok: true })
    expect(await inspect()).toMatchObject({ rerun: true, steps: [{ label: 'charge', state: 'done' }] })
    expect(events.at(-1)).toMatchObject({ type: 'resolved', attempt: 1, as: 'rerun' })
    const second = await run()
    expect(second.previousOutcome).toBe('unknown')
    const work = vi.fn()
    expect(await second.context.step('charge', work)).toBe(1)
    expect(work).not.toHaveBeenCalled()
    await second.fail('perhaps', 'no_answer')
    expect(await claim()).toMatchObject({ code: 'outcome_unknown' })
  })

  test('cannot, on a store that keeps no steps: it would take it for a failure without effect', async () => {
    const { begin, renew, complete, release, resolve } = new MemoryStore()
    const memory = new MemoryStore()
    const bare: Store = Object.fromEntries(
      Object.entries({ begin, renew, complete, release, resolve }).map(([name, command]) => [
        name,
        command.bind(memory),
      ]),
    ) as never
    const engine = createOperationEngine({ store: bare, onEvent: () => {}, ...TIMES })
    await expect(engine.resolve({ scope: 's', key: 'k' }, 1, 'rerun')).rejects.toEqual(code('command_missing'))
  })
})

describe('a failure while a step runs', () => {
  test('is sent, aborts the signal, and keeps the record in flight until the step has settled', async () => {
    const { run, inspect, claim, engine } = stage()
    const first = await run()
    let pay = (_: number): void => {}
    const paid = first.context.step('charge', () => new Promise<number>((resolve) => (pay = resolve)))
    await vi.waitFor(async () => expect(await inspect()).toMatchObject({ steps: [{ label: 'charge' }] }))
    expect(await first.fail('perhaps', 'no_answer')).toEqual({ action: 'send' })
    expect(first.context.signal.aborted).toBe(true)
    expect(await inspect()).toMatchObject({ state: 'in-flight' })
    expect(await claim()).toMatchObject({ code: 'in_flight' })
    pay(1)
    expect(await paid).toBe(1)
    await engine.idle()
    expect(await inspect()).toMatchObject({
      state: 'failed',
      uncertain: true,
      steps: [{ label: 'charge', state: 'done' }],
    })
  })

  test('ends with maxRunMs, although the step has not settled: its record is released then, and the next attempt is told', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const { run, inspect, engine } = stage()
    const first = await run()
    void first.context.step('charge', () => new Promise<number>(() => {}))
    await vi.advanceTimersByTimeAsync(1)
    await first.fail('certainly', 'refused')
    await vi.advanceTimersByTimeAsync(TIMES.maxRunMs - 2)
    expect(await inspect()).toMatchObject({ state: 'in-flight' })
    await vi.advanceTimersByTimeAsync(1)
    expect(await inspect()).toMatchObject({ state: 'failed', uncertain: true })
    await engine.idle()
    const work = vi.fn(() => 1)
    await (await run()).context.step('charge', work)
    expect(work).toHaveBeenCalledWith(expect.objectContaining({ previousOutcome: 'unknown' }))
  })
})

describe('a lost lease', () => {
  describe('a failure during a step is answered by the record', () => {
    beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] }))
    afterEach(() => void vi.useRealTimers())

    /** A run whose renewals were not confirmed, with a step that runs. */
    async function lapsed(renew: (renewed: () => unknown) => Promise<never>, store = new MemoryStore()) {
      const { spied, ...staged } = stage({}, store)
      const renewed = spied.renew
      spied.renew = (...sent) => renew(() => renewed(...sent))
      const first = await staged.run()
      let pay = (_: number): void => {}
      void first.context.step('charge', () => new Promise<number>((resolve) => (pay = resolve)))
      await vi.advanceTimersByTimeAsync(TIMES.leaseMs)
      const recover = () => {
        spied.renew = renewed
      }
      return { ...staged, spied, first, pay: () => pay(1), recover }
    }
    const unsent = () => Promise.reject(new Error('away'))

    test.each(['completed', 'in-flight'] as const)('of the other: %s', async (state) => {
      const { first, run, recover } = await lapsed(unsent)
      const second = await run()
      if (state === 'completed') await second.complete(ANSWER)
      recover()
      expect(await first.fail('certainly', 'refused')).toMatchObject(
        state === 'completed' ? { action: 'replay' } : { action: 'refuse', code: 'in_flight' },
      )
    })

    test('that nobody has taken: it is sent, and the record is not released before the step has settled', async () => {
      const { first, pay, recover, commands, inspect } = await lapsed(async (renewed) => {
        await renewed()
        throw new Error('reply lost')
      })
      recover()
      expect(await first.fail('certainly', 'refused')).toEqual({ action: 'send' })
      expect(commands).not.toContain('release')
      expect(await inspect()).toMatchObject({ state: 'in-flight' })
      pay()
      await vi.advanceTimersByTimeAsync(1)
      expect(commands.slice(-2)).toEqual(['charge done', 'release'])
    })

    test('that was lost: it is restored with the steps of this run', async () => {
      const store = new MemoryStore()
      const { first, recover, inspect } = await lapsed(unsent, store)
      store.clear()
      recover()
      expect(await first.fail('certainly', 'refused')).toEqual({ action: 'send' })
      await vi.advanceTimersByTimeAsync(1)
      expect(await inspect()).toMatchObject({ state: 'in-flight', steps: [{ label: 'charge', state: 'begun' }] })
    })

    test('that its own release has reached before: it is sent', async () => {
      const { first, pay, spied, recover, inspect, types } = await lapsed(unsent)
      recover()
      const renewed = spied.renew
      const overtaken = gate()
      spied.renew = async (...sent) => {
        await overtaken.opened
        return renewed(...sent)
      }
      const { release } = spied
      const confirmed = gate()
      spied.release = async (...sent) => {
        const reply = await release(...sent)
        await confirmed.opened
        return reply
      }
      const failed = first.fail('certainly', 'refused')
      pay()
      await vi.advanceTimersByTimeAsync(1)
      expect(await inspect()).toMatchObject({ state: 'failed' })
      overtaken.open()
      await vi.advanceTimersByTimeAsync(1)
      confirmed.open()
      expect(await failed).toEqual({ action: 'send' })
      expect(types().at(-1)).toBe('failed')
    })

    test('that does not answer: its client is told to retry', async () => {
      const { first } = await lapsed(unsent)
      expect(await first.fail('certainly', 'refused')).toMatchObject({ action: 'refuse', code: 'store_unavailable' })
    })
  })

  test('lets no step begin, and a late result changes no record of another', async () => {
    let now = 0
    const store = new MemoryStore({ now: () => now })
    const { run, inspect } = stage({}, store)
    const first = await run()
    let pay = (_: number): void => {}
    const paid = first.context.step('charge', () => new Promise<number>((resolve) => (pay = resolve)))
    await vi.waitFor(async () => expect(await inspect()).toMatchObject({ steps: [{ label: 'charge' }] }))
    now = 13_000
    const second = await run()
    expect(await second.context.step('charge', ({ previousOutcome }) => previousOutcome)).toBe('unknown')
    const before = await inspect()
    pay(1)
    expect(await paid).toBe(1)
    expect(await inspect()).toEqual(before)
    expect(first.context.signal.aborted).toBe(true)
    const work = vi.fn()
    await expect(first.context.step('ship', work)).rejects.toEqual(code('lease_lost'))
    expect(work).not.toHaveBeenCalled()
  })
  test('that the store alone knows of lets no step begin', async () => {
    let now = 0
    const { run, inspect } = stage({}, new MemoryStore({ now: () => now }))
    const first = await run()
    now = TIMES.leaseMs
    await run()
    const work = vi.fn()
    await expect(first.context.step('charge', work)).rejects.toEqual(code('lease_lost'))
    expect(work).not.toHaveBeenCalled()
    expect(await inspect()).not.toHaveProperty('steps')
    expect(first.context.signal.aborted).toBe(true)
  })

  test('after maxRunMs lets no step begin either', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const { run } = stage()
    const first = await run()
    await vi.advanceTimersByTimeAsync(TIMES.maxRunMs + TIMES.leaseMs)
    await expect(first.context.step('charge', vi.fn())).rejects.toEqual(code('lease_lost'))
    await first.fail('perhaps', 'no_answer')
    await expect(first.context.step('charge', vi.fn())).rejects.toEqual(code('step_late'))
  })

  test('that is lost while the step is being marked: the work is not called', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const { run, spied, trouble, held } = stage()
    spied.renew = () => Promise.reject(new Error('away'))
    const first = await run()
    await vi.advanceTimersByTimeAsync(TIMES.leaseMs - 500)
    trouble.next = ['hang']
    const work = vi.fn()
    const charged = expect(first.context.step('charge', work)).rejects.toEqual(code('lease_lost'))
    await vi.advanceTimersByTimeAsync(600)
    held[0]?.()
    await charged
    expect(work).not.toHaveBeenCalled()
  })
})

describe('a result after the end of its run', () => {
  test.each(['completed', 'failed'] as const)('that was %s is not sent, and restores no record', async (state) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const { run, inspect, commands, types } = stage()
    const first = await run()
    let pay = (_: number): void => {}
    const paid = first.context.step('charge', () => new Promise<number>((resolve) => (pay = resolve)))
    await vi.advanceTimersByTimeAsync(1)
    if (state === 'completed') await first.complete(ANSWER)
    else await first.fail('perhaps', 'no_answer')
    await vi.advanceTimersByTimeAsync(TIMES.maxRunMs)
    expect(await inspect()).toMatchObject({ state })
    await vi.advanceTimersByTimeAsync(TIMES.retentionMs)
    pay(1)
    expect(await paid).toBe(1)
    expect(commands).toEqual(['begin', 'charge begun', state === 'completed' ? 'complete' : 'release'])
    expect(types()).not.toContain('step_done')
    expect(await inspect()).toBe(null)
  })

  test('whose time is over, but which has not ended, is recorded', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const { run, inspect } = stage()
    const first = await run()
    let pay = (_: number): void => {}
    const paid = first.context.step('charge', () => new Promise<number>((resolve) => (pay = resolve)))
    await vi.advanceTimersByTimeAsync(TIMES.maxRunMs + TIMES.leaseMs)
    pay(1)
    await paid
    expect(await inspect()).toMatchObject({ steps: [{ label: 'charge', state: 'done' }] })
  })
})

test.each([
  ['fails', (run: Run) => run.fail('certainly', 'refused')],
  ['completes', (run: Run) => run.complete(ANSWER)],
])('a run that %s while a step is being marked calls no work: step_late', async (_how, end) => {
  const { run, trouble, held } = stage()
  const first = await run()
  trouble.next = ['hang']
  const work = vi.fn()
  const charged = expect(first.context.step('charge', work)).rejects.toEqual(code('step_late'))
  await vi.waitFor(() => expect(held).toHaveLength(1))
  expect(await end(first)).toEqual({ action: 'send' })
  held[0]?.()
  await charged
  expect(work).not.toHaveBeenCalled()
})

test('nor does one that completes while a step waits for the result of another', async () => {
  const { run, trouble, held } = stage()
  const first = await run()
  trouble.next = [undefined, 'hang']
  const charged = first.context.step('charge', () => 1)
  await vi.waitFor(() => expect(held).toHaveLength(1))
  const work = vi.fn()
  const shipped = expect(first.context.step('ship', work)).rejects.toEqual(code('step_late'))
  await first.complete(ANSWER)
  held[0]?.()
  await Promise.all([charged, shipped])
  expect(work).not.toHaveBeenCalled()
})
