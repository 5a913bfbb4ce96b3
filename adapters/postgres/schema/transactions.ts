import {
  ANSWER,
  afterNowSql,
  BY_POSTGRES,
  buildFunctionSql,
  COMMAND_WAITS,
  DURABLY,
  deleteStepsSql,
  FORMAT,
  NOW,
  ON_A_PRIMARY,
  readRecordSql,
  recordVariablesSql,
} from './plpgsql.js'

/** The transaction's mark: a setting that ends with the transaction. */
const MARK = 'once_per_key.token'

/**
 * Functions that run inside the application's transaction. Each raises an error if the transaction must not commit,
 * which aborts it: nobody has to check a reply.
 *
 * The mark proves that this is the transaction that was opened for the run with this token: same connection, same
 * database, and not rolled back since. That something was written before the completion proves that the effects are not
 * elsewhere, as far as that can be known; no statement of ours counts, since the mark writes nothing. When the application
 * opened the transaction itself, for `completeIn`, that check is all there is.
 */
export function buildTransactionsSql(schema: string): string {
  return `
CREATE OR REPLACE FUNCTION ${schema}.mark_v1(p_token text, p_idle_ms bigint, OUT isolation text)
LANGUAGE plpgsql VOLATILE ${BY_POSTGRES}
AS $body$
DECLARE
  ${MARKS}
BEGIN${ON_A_PRIMARY}${BOUND_INACTIVITY}
  isolation := current_setting('transaction_isolation');
END
$body$;
${inTransactionFunctionSql(schema, {
  name: 'step_v1',
  parameters: 'p_key text, p_token text, p_label text',
  columns: ', OUT result bytea',
  check: MARKED,
  change: 'uncertain = true',
  after: `
    SELECT 'recorded', s.result INTO reply, result FROM ${schema}.steps s
    WHERE s.record = record_id AND s.label = p_label AND s.state = 'done';
    reply := coalesce(reply, 'ok');`,
})}${inTransactionFunctionSql(schema, {
  name: 'step_done_v1',
  parameters: 'p_key text, p_token text, p_label text, p_order bigint, p_result bytea',
  check: MARKED,
  change: 'uncertain = true',
  after: `
    INSERT INTO ${schema}.steps AS s (record, label, step_order, state, result)
    VALUES (record_id, p_label, p_order, 'done', p_result)
    ON CONFLICT (record, label) DO UPDATE SET
      step_order = excluded.step_order, state = excluded.state, result = excluded.result
    WHERE s.state <> 'done';`,
})}${completionFunctionSql(schema, 'complete_in_v1', MARKED + WRITTEN)}${completionFunctionSql(schema, 'complete_in_empty_v1', MARKED)}${completionFunctionSql(schema, 'complete_by_hand_v1', WRITTEN)}`
}

/** The last statement of a transaction, by what it checks before. */
function completionFunctionSql(schema: string, name: string, check: string): string {
  return inTransactionFunctionSql(schema, {
    name,
    parameters: `p_key text, p_token text, p_retention_ms bigint, ${ANSWER}`,
    check,
    change: COMPLETED,
    after: `\n    ${deleteStepsSql(schema)}`,
  })
}

/** The variables of the following. */
export const MARKS = `mark CONSTANT text := coalesce(current_setting('${MARK}', true), '');
  idle_ms CONSTANT numeric :=
    extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval) * 1000;`

/** Marks the transaction with the token, and makes the database end a session that is inactive in it for too long. */
export const BOUND_INACTIVITY = `
  IF mark NOT IN ('', p_token) THEN
    RAISE EXCEPTION USING ERRCODE = 'OP006',
      MESSAGE = 'once-per-key: this transaction belongs to another run';
  END IF;
  PERFORM set_config('${MARK}', p_token, true);
  IF idle_ms = 0 OR idle_ms > p_idle_ms THEN
    PERFORM set_config('idle_in_transaction_session_timeout', p_idle_ms::text, true);
  END IF;`

export const MARKED = `
  IF coalesce(current_setting('${MARK}', true), '') <> p_token THEN
    RAISE EXCEPTION USING ERRCODE = 'OP002',
      MESSAGE = 'once-per-key: this is not the transaction that was opened for this run, or it was rolled back meanwhile';
  END IF;`

export const WRITTEN = `
  IF pg_current_xact_id_if_assigned() IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'OP007',
      MESSAGE = 'once-per-key: nothing was written in this transaction, so it is not the one with the effects';
  END IF;`

const COMPLETED = `state = 'completed', uncertain = false, lease_until = NULL, expires_at = ${afterNowSql('p_retention_ms')},
    status = p_status, head = p_head, body = p_body`

interface InTransactionFunction {
  readonly name: string
  readonly parameters: string
  readonly check: string
  readonly change: string
  readonly columns?: string
  readonly after: string
}

/** Locks the record until the transaction ends, and changes it; raises unless it is in flight and has this token. */
function inTransactionFunctionSql(
  schema: string,
  { name, parameters, check, change, columns = '', after: next }: InTransactionFunction,
): string {
  return buildFunctionSql(schema, {
    name,
    parameters: `${parameters}, OUT reply text${columns}`,
    waits: COMMAND_WAITS,
    declare: [NOW, recordVariablesSql(schema)],
    body: `${ON_A_PRIMARY}${check}${DURABLY}
  UPDATE ${schema}.records t SET ${change}
  WHERE t.id = record_id AND t.format = ${FORMAT} AND t.token = p_token AND t.state = 'in-flight' AND now < t.expires_at;
  IF FOUND THEN
    reply := 'ok';${next}
    RETURN;
  END IF;
${readRecordSql(schema)}
  IF NOT unexpired THEN
    RAISE EXCEPTION USING ERRCODE = 'OP003',
      MESSAGE = 'once-per-key: this database has no record of this run: its retention has ended, or it is another database';
  ELSIF r.token = p_token AND r.state <> 'in-flight' THEN
    RAISE EXCEPTION USING ERRCODE = 'OP005',
      MESSAGE = format('once-per-key: this run has already ended: its record is %s', r.state);
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'OP004',
    MESSAGE = 'once-per-key: another attempt owns the record: this one lost its lease';`,
  })
}
