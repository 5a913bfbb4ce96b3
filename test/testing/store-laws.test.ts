import { MemoryStore } from 'once-per-key/memory'
import { storeLaws } from 'once-per-key/testing'
import { describe, test } from 'vitest'
import { mapStore } from '../support/map-store.js'

describe('MemoryStore keeps every law', () => {
  storeLaws(test, async () => {
    let now = 1
    const advance = (ms: number) => {
      now += ms
    }
    return { store: new MemoryStore({ now: () => now }), advance }
  })
})

describe('the machine in a Map keeps every law', () => {
  storeLaws(test, async () => {
    let now = 1
    const advance = (ms: number) => {
      now += ms
    }
    return { store: mapStore(() => now), advance }
  })
})

describe('MemoryStore keeps every law by the real clock', { concurrent: true }, () => {
  storeLaws(test, async () => ({ store: new MemoryStore() }))
})
