import type { Mutant } from '../mutants/mutant.js'

type Planted = Omit<Mutant, 'layer' | 'on'>

/** Of transactions that complete the record of a claim. */
const COMPLETING: readonly Planted[] = [
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

/**
 * Of transactions that take their keys: each is found by its scene. What is defended twice is not here: with the lock alone away, without
 * the look inside, or with a lost COMMIT that is asked for while a transaction holds the key, the unique index still refuses the second
 * effect.
 */
const UNCLAIMED: readonly Planted[] = [
  {
    name: 'a failure is sent before the key was looked at once more',
    find: 'onFenceReply(state, event.found)',
    replace: 'onFenceReply(state, { isTaken: false, record: null, isOwn: false })',
    check: 'S3',
  },
  {
    name: 'a failure is sent while a transaction holds its key',
    find: "CASE WHEN pg_catalog.pg_try_advisory_xact_lock_shared(:lock) THEN '1'",
    replace: "CASE WHEN pg_catalog.pg_try_advisory_xact_lock_shared(:lock) IS NOT NULL THEN '1'",
    check: 'S3',
  },
  {
    name: 'the fence reads before it has the lock',
    find: `const { free } = await this.database.queryRow(this.statements.tryLock({ lock }))
    return free === '1' ? this.read(key) : 'locked'`,
    replace: `const found = await this.read(key)
    const { free } = await this.database.queryRow(this.statements.tryLock({ lock }))
    return free === '1' ? found : 'locked'`,
    check: 'S3',
  },
  {
    name: 'a success without a transaction is sent',
    find: "withhold(state, 'no_transaction', 'transaction missing')",
    replace: "fence(state, null, 'own')",
    check: 'S3',
  },
  {
    name: 'nobody is told of a success that was withheld',
    find: 'attempt, uncertain: true, expiresAt: now + retentionMs, } as const',
    replace: 'attempt, uncertain: false, expiresAt: now + retentionMs, } as const',
    check: 'S5',
  },
  {
    name: 'an expired record keeps its key for ever',
    find: "await table.resolveLockedAs(table.writeIfUnchanged(key, null, found.version, 'claim'), false)",
    replace: '',
    check: 'L1',
  },
  {
    name: 'a transaction takes its key from another state than it has seen',
    find: 'WHERE t.token {=} :seen AND (t.expires_at',
    replace: 'WHERE (t.expires_at',
    check: 'S5',
  },
  {
    name: "another attempt's success counts as one's own COMMIT",
    find: 'machine.peek(record, now).reply, isOwn: record?.token === token }',
    replace: "machine.peek(record, now).reply, isOwn: record?.state === 'completed' }",
    check: 'S3',
  },
  {
    name: 'a transaction that its handler has begun takes the key',
    find: 'const written = [...MARKED, ...WRITTEN]',
    replace: 'const written = WRITTEN',
    check: 'S3',
  },
  {
    name: 'duplicates wait inside their transactions',
    find: "CASE WHEN pg_catalog.pg_try_advisory_xact_lock(:lock) THEN '1'",
    replace: "CASE WHEN pg_catalog.pg_advisory_xact_lock(:lock)::pg_catalog.text IS NOT NULL THEN '1'",
    check: 'L1',
  },
  {
    name: 'a serializable transaction looks for its record',
    find: "CASE WHEN pg_catalog.current_setting('transaction_isolation') {=} 'read committed' THEN (",
    replace: 'CASE WHEN true THEN (',
    check: 'L1',
  },
]

/** Each is found by its scene. What two things prevent is not here: a row of the table is an index entry and a lock at once. */
const ON_MYSQL: readonly Planted[] = [
  {
    name: 'MySQL: a failure is sent while a transaction holds its key',
    find: "if (found === 'locked') return { isTaken: true, record: null, isOwn: false }",
    replace: "if (found === 'locked') return { isTaken: false, record: null, isOwn: false }",
    check: 'S3',
  },
  {
    name: 'MySQL: the fence reads what was committed before',
    find: `const found = await table.readUnlessKeyLocked(key)
        if (found === 'locked') return { isTaken: true, record: null, isOwn: false }`,
    replace: 'const found = await table.read(key)',
    check: 'S3',
  },
  {
    name: "MySQL: another attempt's success counts as one's own COMMIT",
    find: `const { record, now } = found
        return { isTaken: false, record: machine.peek(record, now).reply, isOwn: record?.token === token }`,
    replace: `const { record, now } = found
        return { isTaken: false, record: machine.peek(record, now).reply, isOwn: record?.state === 'completed' }`,
    check: 'S3',
  },
  {
    name: 'MySQL: a transaction takes its key from another state than it has seen',
    find: "else if (!isSameVersion((await this.#lock(open, key, true)).version, found.version)) return 'locked'",
    replace: 'else Object.assign(found, await this.#lock(open, key, true))',
    check: 'S5',
  },
  {
    name: 'MySQL: a transaction that its handler has begun takes the key',
    find: 'throw findErrorNumber(cause) === DOES_NOT_EXIST ? error(cause) : cause',
    replace: 'if (findErrorNumber(cause) !== DOES_NOT_EXIST) throw error(cause)',
    check: 'S3',
  },
  {
    name: 'MySQL: a transaction in which nothing was written commits',
    find: 'if (!allowEmpty && (await this.#countWrites(open)) === open.mark.writesBefore) {',
    replace: 'if (!allowEmpty && (await this.#countWrites(open)) < open.mark.writesBefore) {',
    check: 'S3',
  },
  {
    name: 'MySQL: duplicates wait inside their transactions',
    find: `const found = await this.#table.readUnlessKeyLocked(key)
    if (found === 'locked') return 'locked'
    if (machine.enter(`,
    replace: `const found = await this.#table.read(key)
    if (machine.enter(`,
    check: 'L1',
  },
  {
    name: 'MySQL: a transaction looks for the row of its key, and locks its neighbours',
    find: 'await this.#setMark(open, entry.token)\n    try {',
    replace: 'await this.#setMark(open, entry.token)\n    try {\n      await this.#lock(open, key, true)',
    check: 'L1',
  },
  {
    name: 'MySQL: a transaction that a time-out has rolled back is entered again',
    find: "if (isLocked(error) || isConflict(error)) return 'taken'",
    replace: "if (isLocked(error)) return 'locked'",
    check: 'S3',
  },
  {
    name: 'MySQL: a claim takes a key that is claimed',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a source
    find: 'FROM DUAL WHERE ${MAY_WRITE}`),',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a source
    replace: 'FROM DUAL WHERE ${IS_PRIMARY} ON DUPLICATE KEY UPDATE token = VALUES(token)`),',
    check: 'S5',
  },
  {
    name: 'MySQL: a record is written over another than was read',
    find: "'id = :id AND token = :seen AND revision = :revision AND expires_at = :expiresAt'",
    replace: "'id = :id AND (1 OR token = :seen OR revision = :revision OR expires_at = :expiresAt)'",
    check: 'S5',
  },
  {
    name: 'MySQL: an owner that was taken over completes the record',
    find: '`id = :id AND token = :token AND state = ',
    replace: '`id = :id AND (1 OR token = :token) AND state = ',
    check: 'S6',
  },
  {
    name: 'MySQL: a command in a transaction that is open on its connection counts',
    find: "if ((serverStatus & SERVER_STATUS_IN_TRANS) !== 0) throw new MySqlStoreError('connection_in_use', ADVICE.connection_in_use)",
    replace: '',
    check: 'S3',
  },
]

/** What stands in code that the databases share is planted for one of them. */
export const mutants: readonly Mutant[] = [
  ...[...COMPLETING, ...UNCLAIMED].map((mutant): Mutant => ({ ...mutant, layer: 'commit', on: 'postgres' })),
  ...ON_MYSQL.map((mutant): Mutant => ({ ...mutant, layer: 'commit', on: 'mysql' })),
]
