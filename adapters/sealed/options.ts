import { Buffer } from 'node:buffer'
import { describeKind, type OptionFault, type OptionRule, optionRules, resolveOptions } from '../../src/core/index.js'
import { parseSecret, SealingKey } from './keys.js'

export interface SealedOptions {
  /**
   * 32 random bytes each, or their base64, as `newSealingKey()` and `npx once-per-key seal` make them. The first one
   * seals; any of them opens. To rotate, add the new one after the first in all processes, then put it first, and
   * remove the old one after `retentionMs`.
   */
  readonly keys: readonly (string | Uint8Array)[]

  /**
   * Compresses answers that get smaller by it. Their length then reveals a little: do not use it if a client can put
   * its own text beside a secret into one answer.
   * @default false
   */
  readonly compress?: boolean | undefined

  /**
   * Replays answers, and uses results of steps, that were stored before sealing was switched on. Anybody who can write
   * to the store can then forge an answer: remove it after `retentionMs`.
   * @default false: an unsealed answer is a store failure
   */
  readonly unsealedMayBeReplayed?: boolean | undefined
}

export interface ReadOptions {
  /** The first one seals. */
  readonly keys: readonly [SealingKey, ...SealingKey[]]
  readonly compress: boolean
  readonly unsealedMayBeReplayed: boolean
}

/** @throws IdempotencyError `options_invalid`, which lists every mistake. */
export function readOptions(options: SealedOptions): ReadOptions {
  const { keys, ...others } = resolveOptions<Required<SealedOptions>>('sealed', options, {
    keys: { rule: findSealingKeysFault, isRequired: true },
    compress: { rule: optionRules.aBoolean, default: false },
    unsealedMayBeReplayed: { rule: optionRules.aBoolean, default: false },
  })
  const read = keys.map((key) => new SealingKey(parseSecret(key) as Uint8Array))
  return { ...others, keys: read } as unknown as ReadOptions
}

/** Messages contain only the kind and length of the value, because it is a secret, or nearly one. */
const findSealingKeysFault: OptionRule = (value): OptionFault | null => {
  const expected = 'one or more different sealing keys, each of 32 random bytes or their base64'
  if (!Array.isArray(value)) return { expected, seen: describeKind(value) }
  if (value.length === 0) return { expected, seen: 'none' }
  const secrets = value.map(parseSecret)
  const wrong = secrets.indexOf(null)
  if (wrong !== -1) return { expected, seen: `at ${wrong}: ${describeSize(value[wrong])}` }
  const texts = secrets.map((secret) => Buffer.from(secret as Uint8Array).toString('base64'))
  return new Set(texts).size === texts.length ? null : { expected, seen: 'one of them twice' }
}

function describeSize(value: unknown): string {
  if (typeof value === 'string') return `a string of ${value.length} characters`
  return value instanceof Uint8Array ? `${value.byteLength} bytes` : describeKind(value)
}
