import { bindingLaws } from 'once-per-key/testing'
import { describe, test } from 'vitest'
import { FRAMEWORKS } from './frameworks/index.js'

describe.each(FRAMEWORKS)('$name keeps every law', ({ name: _, start, ...traits }) => {
  bindingLaws(
    test,
    async (app) => {
      const { port, once, close } = await start(app)
      return { port, idle: () => once.idle(), close }
    },
    traits,
  )
})
