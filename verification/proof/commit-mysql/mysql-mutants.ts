import type { Mutant } from '../mutants/mutant.js'

/** Each is found by its scene. What two things prevent is not here: a row of the table is an index entry and a lock at once. */
const planted: readonly Omit<Mutant, 'layer'>[] = [
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
    find: 'if (!isSameVersion(version, taken)) throw operationTakenError()',
    replace: 'if (version === null) throw operationTakenError()',
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

export const mutants: readonly Mutant[] = planted.map((mutant) => ({ ...mutant, layer: 'commit-mysql' }))
