import { optionRules, resolveOptions } from '../../core/index.js'
import { boundLaws, claimLaws, repeatLaws } from './claim-laws.js'
import { operatorsTable, ownersTable } from './command-tables.js'
import { answerLaws, keyLaws } from './key-laws.js'
import { forgetLaws, listLaws, operatorLaws } from './operator-laws.js'
import { type OpenedStore, runLaw } from './play.js'
import { raceLaws } from './race-laws.js'
import { randomLaws } from './random-laws.js'
import { retentionLaws } from './retention-laws.js'
import { operatorStepLaws, stepLaws } from './step-laws.js'

export interface StoreLawsOptions {
  /**
   * Whether the store has `inspect` and `resolve`.
   * @default false
   */
  readonly operable?: boolean | undefined

  /**
   * Whether the store has `list`; its laws use `inspect` and `resolve`.
   * @default false
   */
  readonly listable?: boolean | undefined

  /**
   * Whether the store has `forget` and `listScope`; their laws use `inspect`.
   * @default false
   */
  readonly forgetful?: boolean | undefined

  /**
   * Whether the store has `step`.
   * @default false
   */
  readonly stepped?: boolean | undefined
}

/**
 * The conformance suite for your own store: one test for each law of the library and each cell of the machine's tables.
 * It registers them with the `test` function of any runner and brings its own assertions, so it runs on vitest,
 * node:test and Jest. A law is a history of commands. Each command goes to your store and to the machine, and both must
 * reply the same. A failure names the law and the command, shows what the machine replies and what your store has replied,
 * and lists the commands before it. Every law also checks that the engine accepts each reply, and that no reply contains a
 * token.
 *
 * `open` is called once for each test and `close` at its end. The suite uses random keys, so all tests may share one
 * database. With `advance` no test waits. Without it the suite really waits, with leases of 50 ms, and takes about
 * fifteen seconds if tests run one after the other; a slow machine makes it slower, not wrong.
 *
 * A store on vitest:
 *
 * @example
 * import { casStore, type machine } from 'once-per-key/core'
 * import { storeLaws } from 'once-per-key/testing'
 * import { describe, test } from 'vitest'
 *
 * function mapStore(now: () => number) {
 *   const rows = new Map<string, machine.StoredRecord>()
 *   return casStore({
 *     read: (key) => ({ record: rows.get(key) ?? null, version: rows.get(key) ?? null }),
 *     swap: (key, version, record) => {
 *       const isUnchanged = (rows.get(key) ?? null) === version
 *       if (isUnchanged) rows.set(key, record)
 *       return isUnchanged
 *     },
 *     now,
 *   })
 * }
 *
 * describe('mapStore', () => {
 *   storeLaws(test, async () => {
 *     let now = 1
 *     return { store: mapStore(() => now), advance: (ms) => { now += ms } }
 *   })
 * })
 *
 * A store with its own clock, on node:test:
 *
 * @example
 * import { test } from 'node:test'
 * import { storeLaws } from 'once-per-key/testing'
 *
 * storeLaws(test, async () => {
 *   const client = await connect()
 *   return { store: new MyStore(client), close: () => client.quit() }
 * })
 */
export function storeLaws(
  test: (name: string, fn: () => Promise<void>) => unknown,
  open: () => Promise<OpenedStore>,
  options: StoreLawsOptions = {},
): void {
  resolveOptions('storeLaws()', options, RULES)
  for (const law of LAWS) {
    if (!law.needs.every((need) => options[need] === true)) continue
    test(law.name, async () => {
      const opened = await open()
      try {
        await runLaw(law, opened)
      } finally {
        await opened.close?.()
      }
    })
  }
}

const { aBoolean } = optionRules
/** A mistyped name would leave out its laws without a word. */
const RULES = { operable: aBoolean, listable: aBoolean, forgetful: aBoolean, stepped: aBoolean }

const LAWS = [
  ...ownersTable,
  ...claimLaws,
  ...raceLaws,
  ...repeatLaws,
  ...boundLaws,
  ...retentionLaws,
  ...answerLaws,
  ...keyLaws,
  ...operatorsTable,
  ...operatorLaws,
  ...listLaws,
  ...forgetLaws,
  ...stepLaws,
  ...operatorStepLaws,
  ...randomLaws,
]
