import type { Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { storeLaws } from 'once-per-key/testing'
import { describe, expect, test, vi } from 'vitest'
import { mapStore } from '../support/map-store.js'

describe('MemoryStore keeps every law', () => {
  storeLaws(
    test,
    open((now) => new MemoryStore({ now })),
    { operable: true, listable: true, forgetful: true, stepped: true },
  )
})

describe('the machine in a Map keeps every law', () => {
  storeLaws(test, open(mapStore), { operable: true, listable: true, forgetful: true, stepped: true })
})

describe('MemoryStore keeps every law by the real clock', { concurrent: true }, () => {
  storeLaws(test, async () => ({ store: new MemoryStore() }), {
    operable: true,
    listable: true,
    forgetful: true,
    stepped: true,
  })
})

test('an option of another name registers nothing: its laws would be left out without a word', () => {
  const register = vi.fn()
  const options = { operble: true } as object
  expect(() => storeLaws(register, open(mapStore), options)).toThrow('operble: did you mean operable?')
  expect(register).not.toHaveBeenCalled()
})

/** A store on a clock that can be moved. */
function open(storeOn: (now: () => number) => Store): Parameters<typeof storeLaws>[1] {
  return async () => {
    let nowMs = 1
    const advance = (ms: number) => {
      nowMs += ms
    }
    return { store: storeOn(() => nowMs), advance }
  }
}
