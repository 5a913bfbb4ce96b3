/**
 * The machine (`src/core/record/machine.ts`) in PL/pgSQL, line by line, in the same order. A property test runs the same
 * histories on both.
 */
import {
  ANSWER,
  afterNowSql,
  buildCommandFunctionSql,
  CLAIM_WAITS,
  DURABLY,
  handOverStepsSql,
  IS_UNKNOWN,
  indentLines,
  isMarkedSql,
  OWNERSHIP,
  readRecordSql,
  retryUntilUnchangedSql,
  SHOWN,
  SHOWN_TO_ITS_OWN,
  SHOWN_WITHOUT_ANSWER,
  shownStepsSql,
  UNCHANGED,
  writeRecordSql,
} from './plpgsql.js'

/** The four commands and the operator's three. */
export function buildCommandsSql(schema: string): string {
  return [
    beginFunctionSql,
    renewFunctionSql,
    completeFunctionSql,
    releaseFunctionSql,
    stepFunctionSql,
    inspectFunctionSql,
    resolveFunctionSql,
    forgetFunctionSql,
  ]
    .map((each) => each(schema))
    .join('')
}

/**
 * If a transaction has locked the row, a claim is refused as in flight, with the record as read: that transaction may
 * be completing it. So the row is locked even if a lapsed record will only be shown (this lock does not wait for the
 * log): the outcome is unknown only if no transaction holds the row.
 */
function beginFunctionSql(schema: string): string {
  return buildCommandFunctionSql(schema, {
    name: 'begin_v1',
    columns: ', OUT steps text',
    parameters:
      'p_key text, p_token text, p_fingerprint text, p_lease_ms bigint, p_retention_ms bigint, p_unknown_outcome text',
    waits: CLAIM_WAITS,
    declare: '\n  step text;',
    body: retryUntilUnchangedSql(
      schema,
      `
    step := CASE
      WHEN NOT unexpired THEN 'acquire'
      WHEN r.token = p_token AND r.state = 'in-flight' THEN 'acquire again'
      WHEN r.token = p_token OR r.state = 'completed' THEN 'refuse'
      WHEN r.state = 'failed' AND NOT r.uncertain THEN 'acquire'
      WHEN r.fingerprint <> p_fingerprint THEN 'refuse'
      WHEN r.state = 'in-flight' AND now < r.lease_until THEN 'refuse'
      WHEN p_unknown_outcome <> 'refuse' THEN 'take over'
      WHEN ${isMarkedSql(schema)} THEN 'take over'
      WHEN r.state = 'in-flight' THEN 'refuse unless it is held'
      ELSE 'refuse'
    END;

    IF step IN ('refuse', 'refuse unless it is held') THEN${SHOWN_TO_ITS_OWN}
      IF step = 'refuse' THEN
        RETURN;
      END IF;
    ELSE
      IF step = 'acquire again' THEN
        n := r;
      ELSE
        n := NULL;
        n.state := 'in-flight'; n.token := p_token; n.fingerprint := p_fingerprint;
        n.attempt := CASE WHEN unexpired THEN r.attempt + 1 ELSE 1 END;
        n.uncertain := step = 'take over';
      END IF;
      n.lease_until := ${afterNowSql('p_lease_ms')};
      n.expires_at := ${afterNowSql('p_retention_ms')};
      reply := 'acquired'; attempt := n.attempt::text; uncertain := n.uncertain::text;
    END IF;

    BEGIN
      IF step = 'refuse unless it is held' THEN
        PERFORM set_config('synchronous_commit', 'off', true);
        PERFORM FROM ${schema}.records t WHERE ${UNCHANGED} FOR NO KEY UPDATE;
        IF FOUND THEN
          RETURN;
        END IF;
        CONTINUE;
      END IF;
${indentLines(writeRecordSql(schema, "step <> 'acquire'", handOverAndShowStepsSql(schema)))}
    EXCEPTION WHEN lock_not_available THEN
      reply := 'in-flight'; lease := '1';
      fingerprint := p_fingerprint; attempt := '1'; uncertain := 'false';
      IF unexpired THEN
        fingerprint := coalesce(r.fingerprint, p_fingerprint); attempt := r.attempt::text; uncertain := r.uncertain::text;
      END IF;
      RETURN;
    END;`,
    ),
  })
}

const handOverAndShowStepsSql = (schema: string) => `
      IF step <> 'acquire' THEN
        IF step = 'take over' THEN
          ${handOverStepsSql(schema)}
        END IF;
        steps := ${indentLines(indentLines(shownStepsSql(schema)))};
      END IF;`

const STALE = `${SHOWN_TO_ITS_OWN}
      RETURN;`

const OK = `
      reply := 'ok';
      RETURN;`

const KEPT_OR_RESTORED = `
    IF unexpired THEN
      n := r;
      reply := 'ok';
    ELSE
      n := NULL;
      n.state := 'in-flight'; n.token := p_token; n.fingerprint := p_fingerprint;
      n.attempt := p_attempt; n.uncertain := p_uncertain;
      reply := 'restored';
    END IF;`

function renewFunctionSql(schema: string): string {
  return buildCommandFunctionSql(schema, {
    name: 'renew_v1',
    parameters: `${OWNERSHIP}, p_lease_ms bigint`,
    body: retryUntilUnchangedSql(
      schema,
      `
    IF unexpired AND (r.token <> p_token OR r.state <> 'in-flight') THEN${STALE}
    END IF;

${KEPT_OR_RESTORED}
    n.lease_until := ${afterNowSql('p_lease_ms')};
    n.expires_at := ${afterNowSql('p_retention_ms')};
${writeRecordSql(schema, 'unexpired')}`,
    ),
  })
}

function completeFunctionSql(schema: string): string {
  return buildCommandFunctionSql(schema, {
    name: 'complete_v1',
    parameters: `${OWNERSHIP}, ${ANSWER}`,
    body: retryUntilUnchangedSql(
      schema,
      `
    IF unexpired AND (r.token <> p_token OR r.state = 'failed') THEN${STALE}
    ELSIF unexpired AND r.state = 'completed' THEN${OK}
    END IF;

    n := NULL;
    n.state := 'completed'; n.token := p_token; n.uncertain := false;
    n.fingerprint := CASE WHEN unexpired THEN r.fingerprint ELSE p_fingerprint END;
    n.attempt := CASE WHEN unexpired THEN r.attempt ELSE p_attempt END;
    n.expires_at := ${afterNowSql('p_retention_ms')};
    n.status := p_status; n.head := p_head; n.body := p_body;
    reply := 'ok';
${writeRecordSql(schema)}`,
    ),
  })
}

/**
 * Waits for a transaction that holds the row, so its reply proves how that transaction ended, even after a lost COMMIT
 * reply.
 */
function releaseFunctionSql(schema: string): string {
  return buildCommandFunctionSql(schema, {
    name: 'release_v1',
    parameters: `${OWNERSHIP}, p_failed_ms bigint`,
    body: retryUntilUnchangedSql(
      schema,
      `
    IF unexpired AND (r.token <> p_token OR r.state = 'completed') THEN${STALE}
    ELSIF unexpired AND r.state = 'failed' THEN${OK}
    END IF;

    n := NULL;
    n.state := 'failed'; n.token := p_token;
    n.attempt := CASE WHEN unexpired THEN r.attempt ELSE p_attempt END;
    n.uncertain := p_uncertain OR (unexpired AND r.uncertain);
    IF n.uncertain THEN
      n.fingerprint := CASE WHEN unexpired THEN r.fingerprint ELSE p_fingerprint END;
      n.expires_at := ${afterNowSql('p_retention_ms')};
    ELSE
      n.expires_at := ${afterNowSql('p_failed_ms')};
    END IF;
    reply := 'ok';
${writeRecordSql(schema, 'unexpired AND n.uncertain')}`,
    ),
  })
}

/** A step's row is compared again where it is written: two commands of one owner may pass the check of the record at once. */
function stepFunctionSql(schema: string): string {
  return buildCommandFunctionSql(schema, {
    name: 'record_step_v1',
    parameters: `${OWNERSHIP}, p_lease_ms bigint, p_label text, p_order bigint, p_state text, p_result bytea`,
    body: retryUntilUnchangedSql(
      schema,
      `
    IF unexpired AND (r.token <> p_token OR r.state = 'failed') THEN${STALE}
    ELSIF unexpired AND r.state = 'completed' THEN
      IF p_state <> 'begun' THEN${indentLines(OK)}
      END IF;${STALE}
    ELSIF unexpired AND EXISTS (
      SELECT FROM ${schema}.steps s
      WHERE s.record = record_id AND s.label = p_label AND (s.step_order > p_order OR s.state = 'done')
    ) THEN${OK}
    END IF;

${KEPT_OR_RESTORED}
    n.lease_until := ${afterNowSql('p_lease_ms')};
    n.expires_at := ${afterNowSql('p_retention_ms')};
${writeRecordSql(schema, 'unexpired', writeStepSql(schema))}`,
    ),
  })
}

const writeStepSql = (schema: string) => `
      INSERT INTO ${schema}.steps AS s (record, label, step_order, state, result)
      VALUES (record_id, p_label, p_order, p_state, p_result)
      ON CONFLICT (record, label) DO UPDATE SET
        step_order = excluded.step_order, state = excluded.state, result = excluded.result
      WHERE s.step_order <= excluded.step_order AND s.state <> 'done';`

const NONE = `
    IF NOT unexpired THEN
      reply := 'none';
      RETURN;
    END IF;`

function inspectFunctionSql(schema: string): string {
  return buildCommandFunctionSql(schema, {
    name: 'inspect_v1',
    columns: ', OUT steps text',
    parameters: 'p_key text',
    volatility: 'STABLE',
    body: `${readRecordSql(schema)}${NONE}${SHOWN}
    IF r.state <> 'completed' THEN
      steps := ${shownStepsSql(schema, '')};
    END IF;`,
  })
}

function resolveFunctionSql(schema: string): string {
  return buildCommandFunctionSql(schema, {
    name: 'resolve_v1',
    parameters: `p_key text, p_token text, p_attempt bigint, p_retention_ms bigint, p_reruns boolean, ${ANSWER}`,
    body: retryUntilUnchangedSql(
      schema,
      `${NONE}
    IF r.token = p_token AND r.state <> 'in-flight' THEN${OK}
    END IF;
    IF r.attempt <> p_attempt OR NOT ${IS_UNKNOWN} THEN${SHOWN}
      RETURN;
    END IF;

    n := NULL;
    n.token := p_token; n.attempt := r.attempt; n.uncertain := false;
    n.expires_at := greatest(r.expires_at, ${afterNowSql('p_retention_ms')});
    IF p_reruns THEN
      n.state := 'failed'; n.fingerprint := r.fingerprint; n.uncertain := true;
    ELSIF p_status IS NULL THEN
      n.state := 'failed';
    ELSE
      n.state := 'completed'; n.fingerprint := r.fingerprint;
      n.status := p_status; n.head := p_head; n.body := p_body;
    END IF;
    reply := 'ok';
${writeRecordSql(schema, 'p_reruns', markForRerunSql(schema))}`,
    ),
  })
}

/** As a row without a label, which no step lacks. */
const markForRerunSql = (schema: string) => `
      IF p_reruns THEN
        ${handOverStepsSql(schema)}
        INSERT INTO ${schema}.steps (record, label, step_order, state) VALUES (record_id, '', 0, 'rerun');
      END IF;`

function forgetFunctionSql(schema: string): string {
  return buildCommandFunctionSql(schema, {
    name: 'forget_v1',
    parameters: 'p_key text, p_state text, p_attempt bigint, p_fingerprint text, p_removes boolean',
    body: retryUntilUnchangedSql(
      schema,
      `${NONE}
    IF r.state <> p_state OR r.attempt <> p_attempt OR r.fingerprint IS DISTINCT FROM p_fingerprint
      OR r.state = 'in-flight' OR r.uncertain THEN${SHOWN_WITHOUT_ANSWER}
      RETURN;
    END IF;

    reply := 'ok';
    IF p_removes THEN${indentLines(indentLines(DURABLY))}
      DELETE FROM ${schema}.records t WHERE ${UNCHANGED};
      IF FOUND THEN
        RETURN;
      END IF;
      CONTINUE;
    END IF;

    IF r.state = 'failed' THEN
      RETURN;
    END IF;

    n := r;
    n.status := 200; n.head := '["",[]]'; n.body := NULL;
${writeRecordSql(schema)}`,
    ),
  })
}
