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
    find: `IF NOT pg_try_advisory_xact_lock_shared(lock) THEN
      reply := 'locked';`,
    replace: `IF false THEN
      reply := 'locked';`,
    check: 'S3',
  },
  {
    name: 'the fence reads before it has the lock',
    find: `own := 'false';
  IF NOT p_reads_only THEN
    IF NOT pg_try_advisory_xact_lock_shared(lock) THEN
      reply := 'locked';
      RETURN;
    ELSIF current_setting('transaction_isolation') <> 'read committed' THEN
      reply := 'again';
      RETURN;
    END IF;
  END IF;
\${readRecordSql(schema)}`,
    replace: `own := 'false';
\${readRecordSql(schema)}
  PERFORM pg_sleep(0.2);
  IF NOT p_reads_only THEN
    IF NOT pg_try_advisory_xact_lock_shared(lock) THEN
      reply := 'locked';
      RETURN;
    ELSIF current_setting('transaction_isolation') <> 'read committed' THEN
      reply := 'again';
      RETURN;
    END IF;
  END IF;`,
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
    find: 'n.attempt := p_attempt; n.uncertain := true;',
    replace: 'n.attempt := p_attempt; n.uncertain := false;',
    check: 'S5',
  },
  {
    name: 'an expired record keeps its key for ever',
    find: "AND (now >= t.expires_at OR t.state = 'failed'",
    replace: "AND (t.state = 'failed'",
    check: 'L1',
  },
  {
    name: 'a transaction takes its key from another state than it has seen',
    find: 'WHERE t.id = record_id AND t.token = p_seen',
    replace: 'WHERE t.id = record_id',
    check: 'S5',
  },
  {
    name: "another attempt's success counts as one's own COMMIT",
    find: 'own := (r.token = p_token)::text;',
    replace: "own := (r.state = 'completed')::text;",
    check: 'S3',
  },
  {
    name: 'a transaction that its handler has begun takes the key',
    find: "['finish_v1', MARKED + WRITTEN],",
    replace: "['finish_v1', WRITTEN],",
    check: 'S3',
  },
  {
    name: 'duplicates wait inside their transactions',
    find: 'is_locked := pg_try_advisory_xact_lock(lock);',
    replace: 'PERFORM pg_advisory_xact_lock(lock); is_locked := true;',
    check: 'L1',
  },
  {
    name: 'a serializable transaction looks for its record',
    find: `IF current_setting('transaction_isolation') <> 'read committed' THEN
      RETURN;
    END IF;`,
    replace: '',
    check: 'L1',
  },
]

export const mutants: readonly Mutant[] = planted.map((mutant) => ({ ...mutant, layer: 'commit' }))
