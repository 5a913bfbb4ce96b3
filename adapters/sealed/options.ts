import { Buffer } from 'node:buffer'
import { checkOptions, kindOf, type OptionFault, type OptionRule, optionRules } from '../../src/core/index.js'
import { SealingKey, secretIn } from './keys.js'

export interface SealedOptions {
  /**
   * 32 random bytes each, or their base64, as `newSealingKey()` and `npx once-per-key seal` make them. The first one seals; with
   * any of them an answer is opened. To rotate, add the new one behind the first in all processes, then put it first, and drop the
   * old one once a `retentionMs` is over.
   */
  readonly keys: readonly (string | Uint8Array)[]

  /**
   * Compresses what is sealed, where that makes it smaller. The length of a sealed answer then tells a little of its content to
   * whoever sees it: leave it off where a client can put text of its own beside a secret into one answer.
   * @default false: nothing but its length shows of an answer
   */
  readonly compress?: boolean | undefined

  /**
   * Replays answers that were stored before sealing was switched on. As long as it is set, whoever can write to the store can
   * forge an answer: drop it once a `retentionMs` is over.
   * @default false: an answer that is not sealed is a store failure
   */
  readonly unsealedMayBeReplayed?: boolean | undefined
}

export interface ReadOptions {
  /** The first seals. */
  readonly keys: readonly [SealingKey, ...SealingKey[]]
  readonly compress: boolean
  readonly unsealedMayBeReplayed: boolean
}

/** @throws IdempotencyError `options_invalid`, which lists every mistake. */
export function readOptions(options: SealedOptions): ReadOptions {
  const given = (typeof options === 'object' && options !== null ? options : {}) as SealedOptions
  const { keys, compress = false, unsealedMayBeReplayed = false } = given
  checkOptions('sealed', options, { keys, compress, unsealedMayBeReplayed }, RULES, { required: ['keys'] })
  const read = keys.map((key) => new SealingKey(secretIn(key) as Uint8Array))
  return { keys: read as [SealingKey, ...SealingKey[]], compress, unsealedMayBeReplayed }
}

/** What was seen is named by its kind and its length: it is a secret, or nearly one. */
const sealingKeys: OptionRule = (value): OptionFault | null => {
  const expected = 'one sealing key or several, of 32 random bytes or their base64 each, no two of them the same'
  if (!Array.isArray(value)) return { expected, seen: kindOf(value) }
  if (value.length === 0) return { expected, seen: 'none' }
  const secrets = value.map(secretIn)
  const wrong = secrets.indexOf(null)
  if (wrong !== -1) return { expected, seen: `at ${wrong}: ${sizeOf(value[wrong])}` }
  const texts = secrets.map((secret) => Buffer.from(secret as Uint8Array).toString('base64'))
  return new Set(texts).size === texts.length ? null : { expected, seen: 'one of them twice' }
}

function sizeOf(value: unknown): string {
  if (typeof value === 'string') return `a string of ${value.length} characters`
  return value instanceof Uint8Array ? `${value.byteLength} bytes` : kindOf(value)
}

const RULES = {
  keys: sealingKeys,
  compress: optionRules.oneOf(true, false),
  unsealedMayBeReplayed: optionRules.oneOf(true, false),
}
