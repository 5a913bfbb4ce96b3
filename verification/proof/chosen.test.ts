import { expect, test } from 'vitest'
import { chosenBy } from './chosen.js'
import { LAYERS } from './layers.js'
import { MUTANTS } from './mutants/catalogue.js'

test('a run of the proof that is given nothing does everything', () => {
  expect(chosenBy([])).toEqual({ layers: Object.keys(LAYERS), mutants: MUTANTS })
})

test('a run of the proof does what it is given', () => {
  expect(chosenBy(['fuzz', 'explore'])).toEqual({ layers: ['explore', 'fuzz'], mutants: [] })
  expect(chosenBy(['mutants'])).toEqual({ layers: [], mutants: MUTANTS })
  expect(chosenBy(['layers'])).toEqual({ layers: Object.keys(LAYERS), mutants: [] })
  const { layers, mutants } = chosenBy(['mutants:races'])
  expect([layers, mutants.map(({ layer }) => layer)]).toEqual([[], ['races']])
  expect(chosenBy(['fault:stale owner completes']).mutants.map(({ layer }) => layer)).toEqual(['commit'])
})

test.each([[['typo']], [['fuzz', 'chaso']], [['mutants:typo']], [['fault:typo']]])(
  'a run of the proof that is given %j fails',
  (asked) => {
    expect(() => chosenBy(asked)).toThrow(/^There is no (typo|chaso|mutants:typo|fault:typo): give some of explore, /)
  },
)
