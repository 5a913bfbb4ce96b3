import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { MUTANTS } from './catalogue.js'
import { plant, readSources } from './planting.js'

const sources = await readSources(fileURLToPath(new URL('../../..', import.meta.url)))

test('each planted fault has its one place in the sources', () => {
  expect(MUTANTS.flatMap((mutant) => errorOf(() => plant(mutant, sources)))).toEqual([])
})

test('no two faults of a layer have the same name', () => {
  const names = MUTANTS.map(({ layer, name }) => `${layer}: ${name}`)
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([])
})

function errorOf(work: () => unknown): string[] {
  try {
    work()
    return []
  } catch (error) {
    return [(error as Error).message]
  }
}

const fault = {
  name: 'a fault',
  find: 'if (late) return refuse()\n',
  replace: '',
  layer: 'model',
  check: 'S1',
} as const

test('a fault finds its place in code that has moved and was formatted anew', () => {
  const moved = new Map([
    ['src/one.ts', 'export {}\n'],
    ['src/two.ts', 'begin()\n        if (late)\n          return refuse()\nend()\n'],
  ])
  expect(plant(fault, moved)).toEqual({ path: 'src/two.ts', text: 'begin()\n        \nend()\n' })
})

test.each([
  ['nowhere', ['if (early) return refuse()']],
  ['in src/0.ts, src/1.ts', ['if (late) return refuse()', 'if (late) return refuse()']],
])('a fault whose text stands %s is not planted', (where, texts) => {
  const sources = new Map(texts.map((text, i) => [`src/${i}.ts`, text]))
  expect(() => plant(fault, sources)).toThrow(`"a fault": its text must stand in the sources once; it stands ${where}`)
})
