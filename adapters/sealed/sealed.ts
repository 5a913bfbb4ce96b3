import {
  type Answer,
  type BeginReply,
  type CommandReply,
  type Fenced,
  type IdempotencyRecord,
  type MaybePromise,
  type Resolution,
  type Store,
  type Unclaimed,
  whenever,
} from '../../src/core/index.js'
import type { SealedStoreError } from './errors.js'
import { type ReadOptions, readOptions, type SealedOptions } from './options.js'
import { openAnswer, openResult, sealAnswer, sealResult } from './sealed-answer.js'

/**
 * A store whose answers are encrypted and authenticated (AES-256-GCM) before the inner store receives them, and
 * decrypted when it returns them. Each is bound to its record's key and fingerprint, and to the store's prefix or schema: an
 * answer that was changed, or moved to another record or store, is a store failure; it is never sent, and its record never counts as absent. Keys, scopes,
 * fingerprints and states are not encrypted.
 *
 * Use it instead of the inner store: it has all its members, such as `transaction` and `migrate`. Nothing else may use
 * the inner store, whose answers are sealed.
 *
 * @example
 * const store = sealed(new RedisStore({ client }), { keys: [process.env.SEALING_KEY] })
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built. Its commands throw
 * SealedStoreError if an answer cannot be opened; nothing was changed.
 */
export function sealed<Inner extends Store>(store: Inner, options: SealedOptions): Inner {
  const commands = createSealedCommands(store, readOptions(options))
  return new Proxy(store, {
    get(inner, name) {
      if (Object.hasOwn(commands, name)) return Reflect.get(commands, name)
      const member: unknown = Reflect.get(inner, name, inner)
      // Bound to the inner store, because a proxy has no private members.
      return typeof member === 'function' ? member.bind(inner) : member
    },
  })
}

function createSealedCommands(store: Store, options: ReadOptions): Partial<Store> {
  const { place = '' } = store
  const toKeep = (key: string, fingerprint: string, answer: Answer) =>
    sealAnswer(answer, { key, fingerprint, place }, options)

  function openRecord<Record extends IdempotencyRecord | null>(key: string, record: Record): Record {
    if (record?.state !== 'completed' || record.answer === null) return record
    const { fingerprint } = record
    return { ...record, answer: openAnswer(record.answer, { key, fingerprint, place }, options) }
  }

  function reply<Reply extends BeginReply | CommandReply | Fenced>(
    key: string,
    reply: MaybePromise<Reply>,
  ): MaybePromise<Reply> {
    return whenever(reply, (known) =>
      'record' in known ? { ...known, record: openRecord<IdempotencyRecord | null>(key, known.record) } : known,
    )
  }

  /** What is written in a transaction is sealed by `around`. */
  function createSealedUnclaimed(unclaimed: Unclaimed): Unclaimed {
    return {
      look: (key, looking) => reply(key, unclaimed.look(key, looking)),
      fence: (key, asker) => reply(key, unclaimed.fence(key, asker)),
      withhold: (key, own) => reply(key, unclaimed.withhold(key, own)),
    }
  }

  const { begun, step, resultToKeep, resultToShow } = createStepSealing(store, options)
  const inspect = store.inspect?.bind(store)
  const resolve = store.resolve?.bind(store)
  return {
    around: { store, toKeep, resultToKeep, resultToShow },
    begin: (key, claim) =>
      whenever(reply(key, store.begin(key, claim)), (known) => begun(key, claim.fingerprint, known)),
    renew: (key, own) => toOwner(store.renew(key, own), (record) => openRecord(key, record)),
    complete: (key, own) => {
      const answer = toKeep(key, own.fingerprint, own.answer)
      return toOwner(store.complete(key, { ...own, answer }), (record) => openRecord(key, record))
    },
    release: (key, own) => toOwner(store.release(key, own), (record) => openRecord(key, record), true),
    ...(store.unclaimed && { unclaimed: createSealedUnclaimed(store.unclaimed) }),
    ...(step && { step: createSealedStep(step, resultToKeep, reply) }),
    ...(inspect && { inspect: (key: string) => whenever(inspect(key), (record) => openRecord(key, record)) }),
    ...(inspect &&
      resolve && {
        // Sealing needs the fingerprint, to which the record is bound while the inspected attempt is the current one.
        resolve: (key: string, resolution: Resolution) =>
          whenever(inspect(key), (record) => {
            const answer = resolution.answer && toKeep(key, record?.fingerprint ?? '', resolution.answer)
            return reply(key, resolve(key, { ...resolution, answer }))
          }),
      }),
  }
}

type OptionalRecord = IdempotencyRecord | null

/**
 * An owner that came too late need not see the other answer: a failure would let it send a success of its own, and release again and
 * again what is not its own. `isProof`: the reply tells how a transaction ended whose COMMIT was not confirmed. Then only an answer whose
 * key is missing is surely another attempt's.
 */
function toOwner(
  reply: MaybePromise<CommandReply>,
  shown: (record: OptionalRecord) => OptionalRecord,
  isProof = false,
): MaybePromise<CommandReply> {
  return whenever(reply, (known) => {
    if (known.ok) return known
    try {
      return { ok: false, record: shown(known.record) }
    } catch (error) {
      if (isProof && (error as Partial<SealedStoreError>).code !== 'seal_key_missing') throw error
      return { ok: false, record: null }
    }
  })
}

/** The results of steps are sealed as answers are, each for its label. */
function createStepSealing(store: Store, options: ReadOptions) {
  const { place = '' } = store
  const step = store.step?.bind(store)

  function openStepResults(key: string, fingerprint: string, reply: BeginReply): BeginReply {
    if (!reply.acquired || reply.steps === undefined) return reply
    const of = { key, fingerprint, place }
    const steps = reply.steps.map((step) => {
      const { label, result } = step
      return { ...step, result: result && openResult(result, label, of, options) }
    })
    return { ...reply, steps }
  }

  const resultToKeep = (key: string, fingerprint: string, label: string, result: Uint8Array) =>
    sealResult(result, label, { key, fingerprint, place }, options)
  const resultToShow = (key: string, fingerprint: string, label: string, kept: Uint8Array) =>
    openResult(kept, label, { key, fingerprint, place }, options)

  return { begun: openStepResults, step, resultToKeep, resultToShow }
}

/** A store with transactions has its own `step` under the same name, whose first argument is a context. */
function createSealedStep(
  step: StepCommand,
  keep: (key: string, fingerprint: string, label: string, result: Uint8Array) => Uint8Array,
  reply: (key: string, reply: MaybePromise<CommandReply>) => MaybePromise<CommandReply>,
): StepCommand {
  return (...given) => {
    const [key, own] = given
    if (typeof key !== 'string') return step(...given)
    const { fingerprint, label, result } = own
    return reply(key, step(key, { ...own, result: result && keep(key, fingerprint, label, result) }))
  }
}

type StepCommand = NonNullable<Store['step']>
