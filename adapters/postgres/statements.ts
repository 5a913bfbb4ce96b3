import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type {
  Answer,
  Claim,
  Completion,
  Entry,
  Finish,
  Forgetting,
  Looking,
  Ownership,
  Resolution,
  StepChange,
  Withheld,
} from '../../src/core/index.js'
import { createTemplate } from '../sql/clients.js'
import { encodeAsciiHead, encodeAsciiJson } from '../sql/record-columns.js'
import { toQuotedName } from './schema/schema.js'

/** A statement for a client, in two forms: a text with `$1`, `$2` …, and the pieces of a tagged template. */
export interface Statement {
  readonly text: string
  readonly values: readonly StatementValue[]
  /** Of this text alone, for a client that names its prepared statements. At most 63 bytes. */
  readonly name: string
  /** As a tagged template receives them: `strings[0]`, the first value, `strings[1]` … */
  readonly strings: TemplateStringsArray
}

/** Only text and bytes: clients convert all other types differently. */
export type StatementValue = string | Buffer | null

export type Statements = ReturnType<typeof createStatements>

export function createStatements(schemaName: string) {
  const schema = toQuotedName(schemaName)
  const own = ['text', 'text', 'text', 'bigint', 'boolean', 'bigint'] as const

  const begin = createCall(`${schema}.begin_v1`, 'text', 'text', 'text', 'bigint', 'bigint', 'text')
  const renew = createCall(`${schema}.renew_v1`, ...own, 'bigint')
  const complete = createCall(`${schema}.complete_v1`, ...own, ...ANSWER_TYPES)
  const release = createCall(`${schema}.release_v1`, ...own, 'bigint')
  const inspect = createCall(`${schema}.inspect_v1`, 'text')
  const resolve = createCall(`${schema}.resolve_v1`, 'text', 'text', 'bigint', 'bigint', 'boolean', ...ANSWER_TYPES)
  const forget = createCall(`${schema}.forget_v1`, 'text', 'text', 'bigint', 'text', 'boolean')
  const listScope = createCall(`${schema}.list_scope_v1`, 'text', 'bigint', 'bigint')
  const list = createCall(`${schema}.list_v1`, 'bigint', 'bigint')
  const sweep = createCall(`${schema}.sweep_v1`, 'bigint', 'bigint')
  const sweepInTurn = createCall(`${schema}.sweep_in_turn_v1`, 'bigint', 'bigint', 'bigint')
  const revision = createCall(`${schema}.revision_v1`)
  const recordStep = createCall(`${schema}.record_step_v1`, ...own, 'bigint', 'text', 'bigint', 'text', 'bytea')

  return {
    ...createTransactionStatements(schema),
    ...createUnclaimedStatements(schema),
    begin: (key: string, { token, fingerprint, leaseMs, retentionMs, unknownOutcome }: Claim) =>
      begin(key, token, fingerprint, `${leaseMs}`, `${retentionMs}`, unknownOutcome),
    renew: (key: string, given: Ownership & { readonly leaseMs: number }) =>
      renew(key, ...encodeOwnership(given), `${given.leaseMs}`),
    complete: (key: string, given: Ownership & { readonly answer: Answer }) =>
      complete(key, ...encodeOwnership(given), ...encodeAnswerValues(given.answer)),
    release: (key: string, given: Ownership & { readonly failedMs: number }) =>
      release(key, ...encodeOwnership(given), `${given.failedMs}`),
    recordStep: (key: string, given: Ownership & StepChange & { readonly leaseMs: number }) => {
      const { leaseMs, label, order, state, result } = given
      const change = [encodeAsciiJson(label), `${order}`, state, toBuffer(state === 'done' ? result : null)] as const
      return recordStep(key, ...encodeOwnership(given), `${leaseMs}`, ...change)
    },
    inspect: (key: string) => inspect(key),
    resolve: (key: string, { token, attempt, retentionMs, rerun, answer: found }: Resolution) =>
      resolve(
        key,
        token,
        `${attempt}`,
        `${retentionMs}`,
        `${rerun === true}`,
        ...(found === null ? NO_ANSWER : encodeAnswerValues(found)),
      ),
    forget: (key: string, { state, attempt, fingerprint, removes }: Forgetting) =>
      forget(key, state, `${attempt}`, fingerprint, `${removes}`),
    listScope: (scope: string, fromBlock: number, blocks: number) =>
      listScope(`${scope}:`, `${fromBlock}`, `${blocks}`),
    list: (fromBlock: number, blocks: number) => list(`${fromBlock}`, `${blocks}`),
    sweep: (fromBlock: number, blocks: number) => sweep(`${fromBlock}`, `${blocks}`),
    sweepInTurn: (blocks: number, pauseMs: number, restMs: number) =>
      sweepInTurn(`${blocks}`, `${pauseMs}`, `${restMs}`),
    revision: (): Statement => revision(),
  }
}

/** Those of a run's transaction. */
function createTransactionStatements(schema: string) {
  const mark = createCall(`${schema}.mark_v1`, 'text', 'bigint')
  const step = createCall(`${schema}.step_v1`, 'text', 'text', 'text')
  const stepDone = createCall(`${schema}.step_done_v1`, 'text', 'text', 'text', 'bigint', 'bytea')
  const completeIn = createCall(`${schema}.complete_in_v1`, 'text', 'text', 'bigint', ...ANSWER_TYPES)
  const completeInEmpty = createCall(`${schema}.complete_in_empty_v1`, 'text', 'text', 'bigint', ...ANSWER_TYPES)
  const completeByHand = createCall(`${schema}.complete_by_hand_v1`, 'text', 'text', 'bigint', ...ANSWER_TYPES)

  return {
    /** The first statement of a run's transaction; `idleMs`: after how long an inactive session is ended. */
    mark: (token: string, idleMs: number) => mark(token, `${idleMs}`),
    /** Locks the record and makes it uncertain. */
    step: (key: string, token: string, label: string) => step(key, token, encodeAsciiJson(label)),
    stepDone: (key: string, token: string, { label, order, result }: StepChange) =>
      stepDone(key, token, encodeAsciiJson(label), `${order}`, toBuffer(result)),
    /** Completes the record in a marked transaction, which must have written something, unless `allowEmpty`. */
    completeIn: (key: string, { token, retentionMs, answer: given }: Completion, allowEmpty = false) =>
      (allowEmpty ? completeInEmpty : completeIn)(key, token, `${retentionMs}`, ...encodeAnswerValues(given)),
    /** The same in a transaction that the application opened, which must have written something. */
    completeByHand: (key: string, { token, retentionMs, answer: given }: Completion) =>
      completeByHand(key, token, `${retentionMs}`, ...encodeAnswerValues(given)),
  }
}

/** Those of runs whose transactions take their keys. */
function createUnclaimedStatements(schema: string) {
  const look = createCall(`${schema}.look_v1`, 'text', 'text', 'text')
  const fence = createCall(`${schema}.fence_v1`, 'text', 'text', 'text', 'boolean')
  const withhold = createCall(`${schema}.withhold_v1`, 'text', 'text', 'text', 'text', 'bigint', 'bigint')
  const enter = createCall(`${schema}.enter_v1`, 'text', 'text', 'text', 'bigint', 'boolean', 'bigint')
  const finished = ['text', 'text', 'text', 'text', 'bigint', 'bigint', ...ANSWER_TYPES] as const
  const finish = createCall(`${schema}.finish_v1`, ...finished)
  const finishEmpty = createCall(`${schema}.finish_empty_v1`, ...finished)
  return {
    /** Whether the key can be taken by a transaction. */
    look: (key: string, { fingerprint, unknownOutcome }: Looking) => look(key, fingerprint, unknownOutcome),
    /** Whether a transaction holds the key, and, `readsOnly`: only the record. */
    fence: (key: string, { token, fingerprint }: Pick<Looking, 'token' | 'fingerprint'>, readsOnly: boolean) =>
      fence(key, token, fingerprint, `${readsOnly}`),
    /** Leaves a failed, uncertain record. */
    withhold: (key: string, { token, fingerprint, seen, attempt, retentionMs }: Withheld) =>
      withhold(key, token, fingerprint, seen, `${attempt}`, `${retentionMs}`),
    /** The first statement of a transaction that takes the key. */
    enter: (key: string, { token, seen, attempt, uncertain, idleMs }: Entry) =>
      enter(key, token, seen, `${attempt}`, `${uncertain}`, `${idleMs}`),
    /** Its last one. */
    finish: (
      key: string,
      { token, fingerprint, seen, attempt, retentionMs, answer: given }: Finish,
      allowEmpty = false,
    ) =>
      (allowEmpty ? finishEmpty : finish)(
        ...([key, token, fingerprint, seen, `${attempt}`, `${retentionMs}`, ...encodeAnswerValues(given)] as const),
      ),
  }
}

const ANSWER_TYPES = ['integer', 'text', 'bytea'] as const

function encodeOwnership({ token, fingerprint, attempt, uncertain, retentionMs }: Ownership): string[] {
  return [token, fingerprint, `${attempt}`, `${uncertain}`, `${retentionMs}`]
}

const NO_ANSWER: readonly StatementValue[] = [null, null, null]

function encodeAnswerValues({ body, ...head }: Answer): readonly StatementValue[] {
  return [`${head.status}`, encodeAsciiHead(head), toBuffer(body)]
}

function toBuffer(bytes: Uint8Array | null): Buffer | null {
  return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/**
 * How a parameter is cast to its type. Always from text, so that clients that ask the server for types send text. `bigint` and its like
 * are words of the grammar; any other type is taken from the schema that a session searches first.
 */
const CASTS = {
  text: '::pg_catalog.text',
  bigint: '::pg_catalog.text::bigint',
  integer: '::pg_catalog.text::integer',
  boolean: '::pg_catalog.text::boolean',
  bytea: '::pg_catalog.bytea',
}
type ParameterType = keyof typeof CASTS

/** A call of one of the schema's functions, which returns rows. */
function createCall(routine: string, ...types: readonly ParameterType[]): (...values: StatementValue[]) => Statement {
  const pieces = [`SELECT * FROM ${routine}(`, ...types.map((type) => `${CASTS[type]}, `)]
  const last = pieces.pop() ?? ''
  pieces.push(types.length === 0 ? `${last})` : `${last.slice(0, -2)})`)
  const strings = createTemplate(pieces)
  const text = pieces.reduce((sql, piece, i) => `${sql}$${i}${piece}`)
  const name = `once_per_key_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
  return (...values) => ({ text, values, name, strings })
}
