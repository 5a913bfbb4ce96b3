import { bindingLaws } from 'once-per-key/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
// Its own tests run here, too: the laws on the binding without a mistake.
import { serve } from '../../examples/recipes/binding-laws.js'
import { FRAMEWORKS } from '../bindings/suite/frameworks/index.js'
import { thoroughly } from '../support/thoroughness.js'
import { BROKEN_BINDINGS, plantedBinding } from './broken-bindings.js'
import { startingWith } from './starting-with.js'

const FETCH = { joinsHeaderLines: true, hasNoErrorHandler: true }

/** Runs the laws, or some of them, as a runner would, and tells which were broken and why. */
async function brokenBy(
  binding: ReturnType<typeof plantedBinding>,
  isRun: (law: string) => boolean,
): Promise<Map<string, unknown>> {
  const laws = new Map<string, () => Promise<void>>()
  bindingLaws(
    (name, fn) => laws.set(name, fn),
    (app) => serve(app, binding),
    FETCH,
  )
  const broken = new Map<string, unknown>()
  const check = ([name, fn]: [string, () => Promise<void>]) => fn().catch((error: unknown) => broken.set(name, error))
  await Promise.all([...laws].filter(([name]) => isRun(name)).map(check))
  return broken
}

describe('bindingLaws finds out a binding where', () => {
  test.each(BROKEN_BINDINGS)('$breaks', async ({ foundBy, alone = false, ...mistake }) => {
    // Each day those that must find it; at full length all of them, which break in no other way.
    const isFinder = (law: string) => alone || foundBy.some((begin) => law.startsWith(begin))
    const broken = await brokenBy(
      plantedBinding(mistake),
      thoroughly(isFinder, () => true),
    )
    const names = [...broken.keys()]
    for (const law of foundBy) expect(names).toContainEqual(expect.stringMatching(startingWith(law)))
    if (alone) expect(names.filter((name) => !foundBy.some((law) => name.startsWith(law)))).toEqual([])
    for (const error of broken.values()) expect(error).toMatchObject({ code: 'ERR_ASSERTION' })
  })

  test.each(FRAMEWORKS)('a duplicate never waits, behind a port: $name', async ({ name: _, start, ...traits }) => {
    const laws = new Map<string, () => Promise<void>>()
    bindingLaws(
      (name, fn) => laws.set(name, fn),
      async ({ options, ...app }) => {
        const impatient = { ...options, inFlightWaitMs: 0 }
        const { port, once, close } = await start({ ...app, options: impatient })
        return { port, idle: () => once.idle(), close }
      },
      traits,
    )
    const law = laws.get('race: a duplicate that waits gets the answer of the first')
    await expect(law?.()).rejects.toThrow('Broken: A duplicate that has waited gets a replay.')
  })

  test('requests are not answered: the law that waits for it fails, and does not hang', async () => {
    const laws = new Map<string, () => Promise<void>>()
    const never = () => new Promise<never>(() => {})
    const open = () => ({ send: never, idle: never })
    bindingLaws((name, fn) => laws.set(name, fn), open, FETCH)
    const [law = async () => {}] = laws.values()
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const failed = expect(law()).rejects.toThrow('Broken: Each request is answered.')
    await vi.advanceTimersByTimeAsync(10_000)
    await failed
  })
})

test('an option of another name registers nothing: its laws would be left out without a word', () => {
  const register = vi.fn()
  const options = { readsBody: true } as object
  const open = () => ({ port: 1, idle: async () => {} })
  expect(() => bindingLaws(register, open, options)).toThrow('readsBody: did you mean readsBodies?')
  expect(register).not.toHaveBeenCalled()
})

test('a framework that differs has other laws; no two of them have one name', () => {
  const namesOf = (framework: Parameters<typeof bindingLaws>[2]) => {
    const names: string[] = []
    const open = () => ({ port: 1, idle: async () => {} })
    bindingLaws((name) => names.push(name), open, framework)
    return names
  }
  const all = namesOf({ readsBodies: true })
  expect(new Set(all).size).toBe(all.length)
  expect(all.length).toBeGreaterThan(45)
  const others = [
    { joinsHeaderLines: true },
    { hasNoErrorHandler: true },
    { hidesErrors: true },
    { readsBodies: false },
  ]
  for (const other of others) expect(namesOf({ readsBodies: true, ...other }).length).toBeLessThan(all.length)
})
