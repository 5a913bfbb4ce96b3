import { createHash } from 'node:crypto'
import {
  ANSWER,
  afterNowSql,
  buildFunctionSql,
  CLAIM_WAITS,
  COMMAND_WAITS,
  DURABLY,
  deleteStepsSql,
  FORMAT,
  handOverStepsSql,
  isMarkedSql,
  NOW,
  ON_A_PRIMARY,
  REPLY,
  readRecordSql,
  recordVariablesSql,
  retryUntilUnchangedSql,
  SHOWN_TO_ITS_OWN,
  UNCHANGED,
  writeRecordSql,
} from './plpgsql.js'
import { BOUND_INACTIVITY, MARKED, MARKS, WRITTEN } from './transactions.js'

/**
 * One transaction, no claim: `look` outside of it, `enter` and `finish` inside, `fence` and `withhold` for what ends without one.
 *
 * The unique index is the authority: the last statement raises if the record is there, and COMMIT may follow it in the same trip. The
 * advisory lock only saves work; but with the lock free, whatever its last holder has committed can be read.
 */
export function buildUnclaimedSql(schema: string): string {
  return `${lookFunctionSql(schema)}${enterFunctionSql(schema)}${finishFunctionSql(schema)}${fenceFunctionSql(schema)}${withholdFunctionSql(schema)}`
}

/**
 * 64 bits of the record's id, which nobody can choose, and of the schema: two stores in one database never meet. Two records that share
 * the bits by accident wait for each other, no more.
 */
function lockVariableSql(schema: string): string {
  const ofSchema = createHash('sha256').update(`once-per-key ${schema}`).digest().readBigInt64BE()
  return `lock CONSTANT bigint := ('x' || encode(substring(record_id FOR 8), 'hex'))::bit(64)::bigint # (${ofSchema})::bigint;`
}

/** The record prevents nobody from taking the key, whose fingerprint and terms the look has compared. */
const IS_FREE = `(r.state = 'failed' OR (r.state = 'in-flight' AND now >= r.lease_until))`

/** An owner died or stalled, or an attempt failed and may have had its effect. */
const IS_UNCERTAIN = `(r.state = 'in-flight' OR r.uncertain)`

/** Finds out, as `begin` does, whether a transaction holds a lapsed record: then its outcome is not unknown. */
function lookFunctionSql(schema: string): string {
  return buildFunctionSql(schema, {
    name: 'look_v1',
    parameters: `p_key text, p_fingerprint text, p_unknown_outcome text, ${REPLY}, OUT seen text`,
    waits: CLAIM_WAITS,
    declare: [NOW, recordVariablesSql(schema)],
    body: `${ON_A_PRIMARY}${readRecordSql(schema)}
  IF stored THEN
    seen := r.token; -- Of an expired row too, which no sweep may have taken yet when the transaction finishes.
  END IF;
  IF NOT unexpired THEN
    reply := 'free'; attempt := '1'; uncertain := 'false';
  ELSIF ${IS_FREE} AND NOT (${IS_UNCERTAIN} AND (r.fingerprint <> p_fingerprint OR (
    p_unknown_outcome = 'refuse' AND NOT coalesce(${isMarkedSql(schema)}, false)
  ))) THEN
    reply := 'free'; attempt := (r.attempt + 1)::text; uncertain := ${IS_UNCERTAIN}::text;
  ELSE${SHOWN_TO_ITS_OWN}
    IF r.state = 'in-flight' AND now >= r.lease_until AND r.fingerprint = p_fingerprint THEN
      BEGIN
        PERFORM set_config('synchronous_commit', 'off', true);
        PERFORM FROM ${schema}.records t WHERE ${UNCHANGED} FOR NO KEY UPDATE;
      EXCEPTION WHEN lock_not_available THEN
        lease := '1';
      END;
    END IF;
  END IF;`,
  })
}

/** Above READ COMMITTED a read here would abort transactions of strangers, and would show what the index tells anyway. */
function enterFunctionSql(schema: string): string {
  return buildFunctionSql(schema, {
    name: 'enter_v1',
    parameters: `p_key text, p_token text, p_seen text, p_attempt bigint, p_uncertain boolean, p_idle_ms bigint, OUT reply text`,
    declare: [lockVariableSql(schema), NOW, MARKS, recordVariablesSql(schema), 'is_locked boolean;'],
    body: `${ON_A_PRIMARY}${BOUND_INACTIVITY}
  is_locked := pg_try_advisory_xact_lock(lock);
  reply := CASE WHEN is_locked THEN 'entered' ELSE 'locked' END;
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RETURN;
  END IF;
${readRecordSql(schema)}
  IF (CASE
    WHEN NOT unexpired THEN p_attempt <> 1
    ELSE r.token IS DISTINCT FROM p_seen OR r.attempt + 1 <> p_attempt OR NOT ${IS_FREE} OR ${IS_UNCERTAIN} <> p_uncertain
  END) THEN
    reply := 'taken';
  END IF;`,
  })
}

function finishFunctionSql(schema: string): string {
  const parameters = `p_key text, p_token text, p_fingerprint text, p_seen text, p_attempt bigint, p_retention_ms bigint, ${ANSWER}`
  const names = [
    ['finish_v1', MARKED + WRITTEN],
    ['finish_empty_v1', MARKED],
  ] as const
  return names
    .map(([name, check]) =>
      buildFunctionSql(schema, {
        name,
        parameters: `${parameters}, OUT reply text`,
        waits: COMMAND_WAITS,
        declare: [NOW],
        body: `${ON_A_PRIMARY}${check}${DURABLY}
  reply := 'ok';
  IF p_seen IS NOT NULL THEN
    UPDATE ${schema}.records t SET
      format = ${FORMAT}, state = 'completed', token = p_token, fingerprint = p_fingerprint, attempt = p_attempt, uncertain = false,
      lease_until = NULL, expires_at = ${afterNowSql('p_retention_ms')}, status = p_status, head = p_head, body = p_body
    WHERE t.id = record_id AND t.token = p_seen
      AND (now >= t.expires_at OR t.state = 'failed' OR (t.state = 'in-flight' AND now >= t.lease_until));
    IF FOUND THEN
      ${deleteStepsSql(schema)}
      RETURN;
    END IF;
  END IF;
  -- Never ON CONFLICT DO NOTHING: COMMIT follows.
  INSERT INTO ${schema}.records (
    id, name, format, state, token, fingerprint, attempt, uncertain, expires_at, status, head, body
  ) VALUES (
    record_id, p_key, ${FORMAT}, 'completed', p_token, p_fingerprint, p_attempt, false,
    ${afterNowSql('p_retention_ms')}, p_status, p_head, p_body
  );`,
      }),
    )
    .join('')
}

/**
 * Two statements: the lock, then the read. In one, the read would show the state from before the lock. At READ COMMITTED each has a
 * snapshot of its own; above, the caller sends the second one itself (`again`): whoever held the lock before the first has ended by then.
 */
function fenceFunctionSql(schema: string): string {
  return buildFunctionSql(schema, {
    name: 'fence_v1',
    parameters: `p_key text, p_token text, p_fingerprint text, p_reads_only boolean, ${REPLY}, OUT own text`,
    declare: [lockVariableSql(schema), NOW, recordVariablesSql(schema)],
    body: `${ON_A_PRIMARY}
  own := 'false';
  IF NOT p_reads_only THEN
    IF NOT pg_try_advisory_xact_lock_shared(lock) THEN
      reply := 'locked';
      RETURN;
    ELSIF current_setting('transaction_isolation') <> 'read committed' THEN
      reply := 'again';
      RETURN;
    END IF;
  END IF;
${readRecordSql(schema)}
  IF NOT unexpired THEN
    reply := 'none';
    RETURN;
  END IF;
  own := (r.token = p_token)::text;
  ${SHOWN_TO_ITS_OWN}`,
  })
}

const KEEPS = `unexpired AND ${IS_UNCERTAIN}`

/** As if the attempt had taken them over. */
const keepUncertainStepsSql = (schema: string) => `
      IF ${KEEPS} THEN
        ${handOverStepsSql(schema)}
      END IF;`

function withholdFunctionSql(schema: string): string {
  return buildFunctionSql(schema, {
    name: 'withhold_v1',
    parameters: `p_key text, p_token text, p_fingerprint text, p_seen text, p_attempt bigint, p_retention_ms bigint, ${REPLY}`,
    waits: COMMAND_WAITS,
    declare: [
      lockVariableSql(schema),
      NOW,
      `r ${schema}.records;`,
      `n ${schema}.records;`,
      'stored boolean;',
      'unexpired boolean;',
    ],
    body: `
  IF NOT pg_try_advisory_xact_lock(lock) THEN
    reply := 'none';
    RETURN;
  END IF;${retryUntilUnchangedSql(
    schema,
    `
    IF unexpired AND r.token = p_token THEN
      reply := 'ok';
      RETURN;
    ELSIF unexpired AND (r.token IS DISTINCT FROM p_seen OR NOT ${IS_FREE}) THEN${SHOWN_TO_ITS_OWN}
      RETURN;
    END IF;

    n := NULL;
    n.state := 'failed'; n.token := p_token; n.fingerprint := p_fingerprint; n.attempt := p_attempt; n.uncertain := true;
    n.expires_at := ${afterNowSql('p_retention_ms')};
    reply := 'ok';
${writeRecordSql(schema, KEEPS, keepUncertainStepsSql(schema))}`,
  )}`,
  })
}
