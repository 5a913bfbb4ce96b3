import { bindingLaws } from 'once-per-key/testing'
import { describe, test } from 'vitest'
import { FRAMEWORKS } from './frameworks/index.js'

describe.each(FRAMEWORKS)('$name keeps every law', (framework) => {
  bindingLaws(
    test,
    async (app) => {
      const { port, once, close } = await framework.start(app)
      return { port, idle: () => once.idle(), close }
    },
    framework,
  )
})
