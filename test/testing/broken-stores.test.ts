import { storeLaws } from 'once-per-key/testing'
import { describe, expect, test } from 'vitest'
import { mapStore } from '../support/map-store.js'
import { thoroughly } from '../support/thoroughness.js'
import { BROKEN_FORGETTING } from './broken-forgetting.js'
import { BROKEN_LISTS } from './broken-lists.js'
import { BROKEN_OPERATORS } from './broken-operators.js'
import { BROKEN_RACES } from './broken-races.js'
import { BROKEN_REPLIES } from './broken-replies.js'
import { BROKEN_STEPS_OF_RUNS } from './broken-steps-of-runs.js'
import { BROKEN_STORES } from './broken-stores.js'
import { BROKEN_TIMES } from './broken-times.js'
import { startingWith } from './starting-with.js'
import { type Open, verdictOn } from './verdict.js'

const ALL = [
  ...BROKEN_STORES,
  ...BROKEN_RACES,
  ...BROKEN_TIMES,
  ...BROKEN_REPLIES,
  ...BROKEN_OPERATORS,
  ...BROKEN_LISTS,
  ...BROKEN_FORGETTING,
  ...BROKEN_STEPS_OF_RUNS,
]

describe('storeLaws finds out a store where', () => {
  test.each(ALL)('$breaks', async ({ open, foundBy, alone = false, because = '' }) => {
    const { list, forget, step } = open(() => 1)
    const has = { listable: list !== undefined, forgetful: forget !== undefined, stepped: step !== undefined }
    // Each day those that must find it; at full length all of them, which break in no other way.
    const isFinder = (law: string) => alone || foundBy.some((begin) => law.startsWith(begin))
    const { broken } = await verdictOn(
      open,
      { operable: true, ...has },
      thoroughly(isFinder, () => true),
    )
    const names = [...broken.keys()]
    const others = names.filter((name) => ![...foundBy, 'random: '].some((law) => name.startsWith(law)))
    for (const law of foundBy) expect(names).toContainEqual(expect.stringMatching(startingWith(law)))
    if (alone) expect(others).toEqual([])
    const message = expect.stringMatching(startingWith(`Broken: ${because}`))
    for (const error of broken.values()) expect(error).toMatchObject({ code: 'ERR_ASSERTION', message })
  })

  test('nothing is broken: then no law is', async () => {
    const { broken, laws } = await verdictOn((now) => mapStore(now), {
      operable: true,
      listable: true,
      forgetful: true,
      stepped: true,
    })
    expect([...broken.keys()]).toEqual([])
    expect(laws.length).toBeGreaterThan(150)
  })

  test('each of them differs from the others', () => {
    expect(ALL.length).toBeGreaterThanOrEqual(10)
    expect(new Set(ALL.map((store) => store.breaks)).size).toBe(ALL.length)
  })
})

test('no two laws have one name', async () => {
  const names: string[] = []
  storeLaws(
    (name) => names.push(name),
    async () => ({ store: mapStore(() => 1) }),
    { operable: true, listable: true, forgetful: true },
  )
  expect(new Set(names).size).toBe(names.length)
})

describe('the operator’s commands', () => {
  const openFour = (now: () => number) => {
    const { inspect: _, resolve: __, ...four } = mapStore(now)
    return four
  }
  const isOfOperators = (name: string) => /^(inspect|resolve|atomic .*: (inspect|resolve))/.test(name)

  test('are no part of the laws, unless the store is said to have them', async () => {
    const { broken, laws } = await verdictOn(openFour)
    expect([...broken.keys()]).toEqual([])
    expect(laws.filter(isOfOperators)).toEqual([])
  })

  test('are missed where the store is said to have them', async () => {
    const { broken, laws } = await verdictOn(openFour, { operable: true })
    expect([...broken.keys()]).toEqual(laws.filter(isOfOperators))
    expect(broken.size).toBeGreaterThan(50)
  })
})

describe('a test of the suite', () => {
  const anyLaw = (fns: (() => Promise<void>)[]) => fns[0] as () => Promise<void>

  test('opens one store, and closes it when the law held', async () => {
    const seen: string[] = []
    await anyLaw(
      lawsOn(
        mapStore(() => 1),
        seen,
      ),
    )()
    expect(seen).toEqual(['open', 'close'])
  })

  test('closes the store when the law was broken', async () => {
    const seen: string[] = []
    const store = { ...mapStore(() => 1), begin: () => Promise.reject(new Error('down')) }
    await expect(anyLaw(lawsOn(store, seen))()).rejects.toThrow('down')
    expect(seen).toEqual(['open', 'close'])
  })

  function lawsOn(store: ReturnType<Open>, seen: string[]): (() => Promise<void>)[] {
    const fns: (() => Promise<void>)[] = []
    storeLaws(
      (_, fn) => fns.push(fn),
      async () => {
        seen.push('open')
        const close = async () => {
          seen.push('close')
        }
        return { store, close }
      },
    )
    return fns
  }
})
