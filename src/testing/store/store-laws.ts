import { checkOptions, optionRules, type Store } from '../../core/index.js'
import { createBench, type Law } from '../bench.js'
import { answerLaws } from './answer-laws.js'
import { claimLaws } from './claim-laws.js'
import { forgetLaws } from './forget-laws.js'
import { boundKeyLaws, keyLaws } from './key-laws.js'
import { beginTable, ownerTable } from './machine-tables.js'
import { listLaws, operatorLaws } from './operator-laws.js'
import { raceLaws, repeatLaws } from './race-laws.js'
import { retentionLaws } from './retention-laws.js'
import { operatorStepLaws, stepLaws } from './step-laws.js'

/** The store that one test checks. */
export interface OpenedStore {
  readonly store: Store
  /** Advances the store's clock by `ms`. Without it the suite really waits. */
  readonly advance?: ((ms: number) => void | Promise<void>) | undefined
  /** Called at the end of the test, whether it passed or not. */
  readonly close?: (() => void | Promise<void>) | undefined
}

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
 * node:test and Jest. A failure says which promise was broken, what was expected and what was seen. Every law also
 * checks that the engine accepts each reply, and that no reply contains a token.
 *
 * `open` is called once for each test and `close` at its end. The suite uses random keys, so all tests may share one
 * database. With `advance` no test waits. Without it the suite really waits, with leases of 50 ms, and takes about
 * fifteen seconds if tests run one after the other; a slow machine makes it slower, not wrong.
 *
 * A store on vitest:
 *
 * @example
 * import { machine, type Store } from 'once-per-key/core'
 * import { storeLaws } from 'once-per-key/testing'
 * import { describe, test } from 'vitest'
 *
 * // The machine decides what each command does to a record: a store runs it in one atomic step, or transcribes it.
 * function mapStore(now: () => number): Store {
 *   const records = new Map<string, machine.StoredRecord>()
 *   const step = <Reply>(key: string, command: (record: machine.StoredRecord | null) => machine.Change<Reply>): Reply => {
 *     const { record, reply } = command(records.get(key) ?? null)
 *     if (record !== null) records.set(key, record)
 *     return reply
 *   }
 *   return {
 *     begin: async (key, claim) => step(key, (record) => machine.begin(record, claim, now())),
 *     renew: async (key, own) => step(key, (record) => machine.renew(record, own, now())),
 *     complete: async (key, own) => step(key, (record) => machine.complete(record, own, now())),
 *     release: async (key, own) => step(key, (record) => machine.release(record, own, now())),
 *   }
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
  checkOptions('storeLaws()', options, options, RULES)
  for (const { name, holds, check } of LAWS) {
    if (!has(options, holds)) continue
    test(name, async () => {
      const { store, advance, close } = await open()
      try {
        await check(createBench(store, advance))
      } finally {
        await close?.()
      }
    })
  }
}

function has(options: StoreLawsOptions, holds: Law['holds']): boolean {
  if (holds === 'everywhere') return true
  if (holds === 'operable and stepped') return options.operable === true && options.stepped === true
  return options[holds] === true
}

const isToldSo = optionRules.oneOf(true, false)
/** A mistyped name would leave out its laws without a word. */
const RULES = { operable: isToldSo, listable: isToldSo, forgetful: isToldSo, stepped: isToldSo }

const LAWS = [
  ...beginTable,
  ...ownerTable,
  ...claimLaws,
  ...raceLaws,
  ...repeatLaws,
  ...boundKeyLaws,
  ...retentionLaws,
  ...answerLaws,
  ...keyLaws,
  ...operatorLaws,
  ...listLaws,
  ...forgetLaws,
  ...stepLaws,
  ...operatorStepLaws,
]
