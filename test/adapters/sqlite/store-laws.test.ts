import type { Store } from 'once-per-key/core'
import { storeLaws } from 'once-per-key/testing'
import { describe, test } from 'vitest'
import { fakeClock } from '../../support/fake-clock.js'
import { thoroughly } from '../../support/thoroughness.js'
import { DRIVER_NAMES, type DriverName } from './drivers.js'
import { openStore } from './open-store.js'

const ON_TWO = {
  how: 'whichever of two connections a command goes over',
  storeOf(driver: DriverName, now: () => number) {
    const { store, storeOn } = openStore(driver, { now })
    return inTurns(store, storeOn())
  },
}
const ON_ONE = {
  how: 'on one connection',
  storeOf: (driver: DriverName, now: () => number): Store => openStore(driver, { now }).store,
}

describe.each(DRIVER_NAMES)('SqliteStore obeys the store laws, on %s', (driver) => {
  describe.each(thoroughly([ON_TWO], [ON_TWO, ON_ONE]))('$how', ({ storeOf }) => {
    const open = async () => {
      const { now, advance } = fakeClock()
      return { store: storeOf(driver, now), advance }
    }
    storeLaws(test, open, { operable: true, listable: true, forgetful: true, stepped: true })
  })
})

/** The first command to one store, the second to the other, and so on. */
function inTurns(one: Required<Omit<Store, 'effects' | 'observe' | 'around' | 'send'>>, other: typeof one): Store {
  let commands = 0
  const next = () => (commands++ % 2 === 0 ? one : other)
  return {
    begin: (key, claim) => next().begin(key, claim),
    renew: (key, own) => next().renew(key, own),
    complete: (key, own) => next().complete(key, own),
    release: (key, own) => next().release(key, own),
    step: (key, own) => next().step(key, own),
    inspect: (key) => next().inspect(key),
    resolve: (key, resolution) => next().resolve(key, resolution),
    list: (from) => next().list(from),
    forget: (key, forgetting) => next().forget(key, forgetting),
    listScope: (scope, from) => next().listScope(scope, from),
  }
}
