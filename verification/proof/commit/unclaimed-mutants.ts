import type { Mutant } from '../mutants/mutant.js'

/**
 * Each is found by its scene. What is defended twice is not here: with the lock alone away, without the look inside, or with a lost
 * COMMIT that is asked for while a transaction holds the key, the unique index still refuses the second effect.
 */
const planted: readonly Omit<Mutant, 'layer'>[] = [
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
    find: "await table.replaceIfLocked(table.remove(key, found.version, 'claim'), false)",
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

export const mutants: readonly Mutant[] = planted.map((mutant) => ({ ...mutant, layer: 'commit' }))
