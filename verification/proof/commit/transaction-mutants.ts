import type { Mutant } from '../mutants/mutant.js'

const planted: readonly Omit<Mutant, 'layer'>[] = [
  {
    name: 'a stale owner completes in its transaction',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a source
    find: 'ON CONFLICT (id) DO UPDATE SET ${set} WHERE ${IS_OWNED}',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a source
    replace: "ON CONFLICT (id) DO UPDATE SET ${set} WHERE t.state {=} 'in-flight'",
    check: 'S6',
  },
  {
    name: 'a COMMIT without a reply counts as committed',
    find: 'if (isOpen && (await transaction.resolve())) return { value: value as Value }',
    replace: 'if (isOpen) return transaction.onCommitted(), { value: value as Value }',
    check: 'S3',
  },
  {
    name: 'an answer leaves before its COMMIT',
    find: "if (transactions.commitsWithLast === true) progress = 'completed'",
    replace: "transaction.onCommitted()\n    if (transactions.commitsWithLast === true) progress = 'completed'",
    check: 'S3',
  },
  {
    name: 'what a transaction of a sealed store completes is not sealed',
    find: 'toKeptAnswer(around.store, key, fingerprint, around.toKeep(key, fingerprint, answer))',
    replace: 'toKeptAnswer(around.store, key, fingerprint, answer)',
    check: 'S13',
    scale: 0.01,
  },
  {
    name: 'work whose transaction was rolled back may answer',
    find: 'if (call?.isRunning !== true) return void this.#close()',
    replace: 'if (call?.isRunning !== true || this.#holdsAnswer) return void this.#close()',
    check: 'S3',
  },
  {
    name: 'a transaction in which nothing was written commits',
    find: 'complete: createOwnChange(schema, SET_COMPLETED, [...MARKED, ...WRITTEN]),',
    replace: 'complete: createOwnChange(schema, SET_COMPLETED, MARKED),',
    check: 'S3',
  },
  {
    name: 'a failure is held while its transaction waits for a connection',
    find: "if (this.#offered.areFailed && this.#state !== 'open') {",
    replace: "if (this.#offered.areFailed && this.#state !== 'open' && this.#call !== undefined) {",
    check: 'L2',
  },
  {
    name: 'a statement in a transaction is waited for without a limit',
    find: 'await limitStatement(this.#run.options.storeTimeoutMs, statement, (error) => this.#wait.giveUp(error))',
    replace: 'await statement',
    check: 'L2',
  },
  {
    name: 'a transaction outlives its run',
    find: 'this.#wait.giveUp(transactionTimedOutError(OVERDUE))',
    replace: '',
    check: 'L2',
  },
  {
    name: 'a transaction that has not taken its key commits',
    find: `\${onConflict} RETURNING t.revision
    )
    SELECT CASE WHEN done.revision IS NOT NULL THEN 'ok'`,
    replace: `ON CONFLICT DO NOTHING RETURNING t.revision
    )
    SELECT CASE WHEN \${toConditionsSql(checks)} THEN 'ok'`,
    check: 'S5',
  },
  {
    name: 'a step in a transaction waits for its own row',
    find: "if (this.#run.holdsTransaction || this.#isInside) throw misuseError('step_in_transaction')",
    replace: '',
    check: 'S14',
  },
  {
    name: 'a step in a transaction does not look whether it was done',
    find: 'if (recorded !== null) taken.found(recorded)\n      else {',
    replace: 'if (isDone) taken.found({ result: null })\n      else {',
    check: 'S14',
    // A reply to the COMMIT of a step must be lost, and its attempt must live on.
    scale: 0.1,
  },
  {
    name: 'a takeover on Postgres is not told the steps',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a source
    find: 'SELECT ${SHOWN_COLUMNS}, ${bodyOfOwn}, r.steps FROM ${records} r WHERE',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a source
    replace: 'SELECT ${SHOWN_COLUMNS}, ${bodyOfOwn}, NULL::pg_catalog.bytea AS steps FROM ${records} r WHERE',
    check: 'S14',
  },
]

export const mutants: readonly Mutant[] = planted.map((mutant) => ({ ...mutant, layer: 'commit' }))
