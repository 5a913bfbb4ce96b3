import { storeLaws } from 'once-per-key/testing'
import { test } from 'vitest'
import { mapStore } from './map-store.js'

async function open() {
  let nowMs = 0
  const advance = (ms: number) => {
    nowMs += ms
  }
  return { store: mapStore(() => nowMs), advance }
}

storeLaws(test, open, { operable: true, stepped: true })
