import { casStore, type Store } from 'once-per-key/core'
import { newSealingKey, sealed } from 'once-per-key/sealed'
import { storeLaws } from 'once-per-key/testing'
import { describe, test } from 'vitest'
import { late, type MapOptions, mapOptions, unlucky } from '../../support/cas-maps.js'
import { fakeClock } from '../../support/fake-clock.js'
import { tryHistories, tryOperatedHistories } from '../../support/history-trials.js'
import { thoroughly } from '../../support/thoroughness.js'

const EVERY_LAW = { operable: true, listable: true, forgetful: true, stepped: true } as const

const withoutRemove = ({ remove: _, ...options }: MapOptions) => options

type Create = (now: () => number) => Store

const EVERYDAY: Readonly<Record<string, Create>> = {
  'over a Map that cannot remove': (now) => casStore({ ...withoutRemove(mapOptions()), now }),
  'over a Map that often says no': (now) => casStore({ ...unlucky(mapOptions()), now }),
  'over a Map whose replies come in any order, with a clock of its own': (now) => {
    const { read, list, ...writing } = late(mapOptions())
    return casStore({
      ...writing,
      read: async (key) => ({ ...((await read(key)) ?? { record: null, version: null }), now: now() }),
      list: async (from) => ({ ...(await list(from)), now: now() }),
      now: () => Number.NaN,
    })
  },
  'sealed, over a Map': (now) => sealed(casStore({ ...mapOptions(), now }), { keys: [newSealingKey()] }),
}

const OTHERS: Readonly<Record<string, Create>> = {
  'over a Map': (now) => casStore({ ...mapOptions(), now }),
  'over a Map whose replies come in any order': (now) => casStore({ ...late(mapOptions()), now }),
  'over a Map whose replies come in any order, and that often says no': (now) =>
    casStore({ ...unlucky(late(mapOptions())), now }),
}

const STORES = Object.entries(thoroughly(EVERYDAY, { ...EVERYDAY, ...OTHERS }))

describe.each(STORES)('casStore obeys the store laws: %s', (_, create) => {
  const open = async () => {
    const { now, advance } = fakeClock()
    return { store: create(now), advance }
  }
  storeLaws(test, open, EVERY_LAW)
})

test.each([
  ['of commands', tryHistories, { number: thoroughly(20, 200), fewestCommands: 500, fewestVisits: 2 }],
  [
    'with operators in between',
    tryOperatedHistories,
    { number: thoroughly(20, 200), fewestCommands: 500, fewestVisits: 1 },
  ],
] as const)('random histories %s get the replies of the machine', async (_, tried, trial) => {
  await tried(trial, 8, () => {
    const { now, advance } = fakeClock()
    return { store: casStore({ ...unlucky(late(mapOptions())), now }), advance: async (ms) => advance(ms) }
  })
})
