import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { MUTANTS } from './catalogue.js'
import { compilerErrorsOf } from './compiler.js'
import { readSources } from './planting.js'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

test('each planted fault is code that compiles', { timeout: 240_000 }, async () => {
  expect(compilerErrorsOf(MUTANTS, await readSources(ROOT), ROOT)).toEqual([])
})
