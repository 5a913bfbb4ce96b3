/**
 * The building blocks of the functions. The names of tables are qualified with their schema. In all of the functions `r` is the record as
 * read and `n` the new record.
 */

/** The format of records that these functions write, and the only one that they read. */
export const FORMAT = 1

/**
 * Each command returns one row. All columns but the body are text, because clients convert other types differently; and
 * single words, because some clients rewrite column names.
 */
export const REPLY = `OUT reply text, OUT fingerprint text, OUT attempt text, OUT uncertain text, OUT lease text, OUT status text,
  OUT head text, OUT body bytea`

/** How long a command waits for a transaction that has locked its row; then it fails, and is retried later. */
export const COMMAND_WAITS = '1s'

/** A waiting claim occupies one of few connections, and a locked row means that the key is in flight. */
export const CLAIM_WAITS = '250ms'

export const OWNERSHIP =
  'p_key text, p_token text, p_fingerprint text, p_attempt bigint, p_uncertain boolean, p_retention_ms bigint'

/** The parameters of an answer, one for each column that stores it. */
export const ANSWER = 'p_status integer, p_head text, p_body bytea'

/**
 * Functions, operators and types are those of Postgres, whatever the session searches first: another `now` or `=` would make two records
 * of one key.
 */
export const BY_POSTGRES = 'SET search_path = pg_catalog, pg_temp'

/** Postgres would scan a small table sequentially, and under SERIALIZABLE that makes unrelated transactions abort. */
export const BY_INDEX = `${BY_POSTGRES} SET enable_seqscan = off`

/** The time of the statement: its transaction may have begun long before. Milliseconds, like the durations. */
export const NOW = `now CONSTANT timestamptz := date_trunc('milliseconds', statement_timestamp());`

/** A storage key may exceed the maximum size of an index entry. */
const RECORD_ID = `record_id CONSTANT bytea := sha256(convert_to(p_key, 'UTF8'));`

interface Routine {
  readonly name: string
  /** With the columns of its reply. */
  readonly parameters: string
  readonly volatility?: 'VOLATILE' | 'STABLE'
  readonly waits?: string
  /** Beside the record's id and the time. */
  readonly declare?: readonly string[]
  readonly body: string
}

/** A function about the record of `p_key`. */
export function buildFunctionSql(
  schema: string,
  { name, parameters, volatility = 'VOLATILE', waits, declare = [], body }: Routine,
): string {
  return `
CREATE OR REPLACE FUNCTION ${schema}.${name}(
  ${parameters}
) LANGUAGE plpgsql ${volatility} ${BY_INDEX}${waits === undefined ? '' : ` SET lock_timeout = '${waits}'`}
AS $body$
DECLARE
  ${[RECORD_ID, ...declare].join('\n  ')}
BEGIN${body}
END
$body$;
`
}

/** What `read` finds. */
export function recordVariablesSql(schema: string): string {
  return `r ${schema}.records;
  stored boolean;
  unexpired boolean;`
}

interface Command {
  readonly name: string
  readonly parameters: string
  /** 'STABLE': the function changes nothing. */
  readonly volatility?: 'VOLATILE' | 'STABLE'
  readonly waits?: string
  /** Columns of the reply beside those of all commands. */
  readonly columns?: string
  readonly declare?: string
  readonly body: string
}

export function buildCommandFunctionSql(
  schema: string,
  { name, parameters, volatility = 'VOLATILE', waits = COMMAND_WAITS, columns = '', declare = '', body }: Command,
): string {
  const variables = `r ${schema}.records;
  n ${schema}.records;
  stored boolean; -- a row exists
  unexpired boolean; -- and it has not expired${declare}`
  const given = `${parameters},\n  ${REPLY}${columns}`
  return buildFunctionSql(schema, { name, parameters: given, volatility, waits, declare: [NOW, variables], body })
}

/** Indents lines by one more step. */
export function indentLines(lines: string): string {
  return lines.replaceAll('\n', '\n  ')
}

export function afterNowSql(durationMs: string): string {
  return `now + ${durationMs} * interval '1 millisecond'`
}

/** A replica may be behind, so even its refusals could be wrong. */
export const ON_A_PRIMARY = `
  IF current_setting('transaction_read_only') = 'on' THEN
    RAISE EXCEPTION USING ERRCODE = 'read_only_sql_transaction',
      MESSAGE = 'once-per-key: this session is read-only, or on a replica';
  END IF;`

/** A confirmed command survives a crash of the server, even if synchronous_commit is off by default. */
export const DURABLY = `
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;`

/** Without a lock: commands that do not write never wait. */
export function readRecordSql(schema: string): string {
  return `
    SELECT t.* INTO r FROM ${schema}.records t WHERE t.id = record_id;
    stored := FOUND;
    unexpired := stored AND now < r.expires_at;
    IF unexpired AND r.format <> ${FORMAT} THEN
      RAISE EXCEPTION USING ERRCODE = 'OP001',
        MESSAGE = format('once-per-key: the record is of format %s, and these functions read format ${FORMAT}', r.format);
    END IF;`
}

/**
 * Reads, decides, and writes only if the row has not changed since; otherwise starts again. Skipping locked rows would
 * be wrong: a row that is locked for a moment is neither free nor in flight.
 */
export function retryUntilUnchangedSql(schema: string, decideAndWrite: string): string {
  return `${ON_A_PRIMARY}
  FOR turn IN 1..20 LOOP${readRecordSql(schema)}
${decideAndWrite}
  END LOOP;
  RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
    MESSAGE = 'once-per-key: the record changed repeatedly while this command tried to change it';`
}

/**
 * Whether the row `t` is unchanged in everything that decisions depend on. The answer is left out: while the token stays
 * the same, only `forget` changes it, and always to the same.
 */
export const UNCHANGED = `t.id = record_id AND t.token = r.token AND t.state = r.state AND t.uncertain = r.uncertain
        AND t.lease_until IS NOT DISTINCT FROM r.lease_until AND t.expires_at = r.expires_at`

export function deleteStepsSql(schema: string): string {
  return `DELETE FROM ${schema}.steps s WHERE s.record = record_id;`
}

/** What was taken back has never begun, the mark of an operator is cleared, and the order starts anew. */
export function handOverStepsSql(schema: string): string {
  return `DELETE FROM ${schema}.steps s WHERE s.record = record_id AND s.state IN ('undone', 'rerun');
          UPDATE ${schema}.steps s SET step_order = 0 WHERE s.record = record_id;`
}

/** Whether an operator has marked the record, so that the next claim takes it over even under 'refuse'. */
export function isMarkedSql(schema: string): string {
  return `r.state = 'failed' AND EXISTS (
        SELECT FROM ${schema}.steps s WHERE s.record = record_id AND s.state = 'rerun'
      )`
}

/** What an owner is told: labels, states and results in base 64, as JSON. */
export function shownStepsSql(schema: string, result = `, translate(encode(s.result, 'base64'), E'\\n', '')`): string {
  return `(
      SELECT json_agg(json_build_array(s.label, s.state${result}) ORDER BY s.position)::text
      FROM ${schema}.steps s WHERE s.record = record_id AND s.state <> 'undone'
    )`
}

/** Writes `n`, does what follows, and returns if the row was unchanged. `keepsSteps`: the condition under which its steps stay. */
export function writeRecordSql(schema: string, keepsSteps = 'false', then = ''): string {
  return `${indentLines(DURABLY)}
    IF stored THEN
      UPDATE ${schema}.records t SET (
        format, state, token, fingerprint, attempt, uncertain, lease_until, expires_at, status, head, body
      ) = ROW(
        ${FORMAT}, n.state, n.token, n.fingerprint, n.attempt, n.uncertain, n.lease_until, n.expires_at, n.status, n.head, n.body
      )
      WHERE ${UNCHANGED};
    ELSE
      INSERT INTO ${schema}.records (
        id, name,
        format, state, token, fingerprint, attempt, uncertain, lease_until, expires_at, status, head, body
      ) VALUES (
        record_id, p_key,
        ${FORMAT}, n.state, n.token, n.fingerprint, n.attempt, n.uncertain, n.lease_until, n.expires_at, n.status, n.head, n.body
      ) ON CONFLICT DO NOTHING;
    END IF;
    IF FOUND THEN
      IF stored AND NOT (${keepsSteps}) THEN
        ${deleteStepsSql(schema)}
      END IF;${then}
      RETURN;
    END IF;`
}

export const SHOWN_WITHOUT_ANSWER = `
      reply := r.state; fingerprint := r.fingerprint; attempt := r.attempt::text; uncertain := r.uncertain::text;
      lease := (extract(epoch FROM r.lease_until - now) * 1000)::bigint::text;`

const ANSWER_SHOWN = `
      status := r.status::text; head := r.head; body := r.body;`

export const SHOWN = `${SHOWN_WITHOUT_ANSWER}${ANSWER_SHOWN}`

/** Returns the answer only to commands with the same fingerprint. */
export const SHOWN_TO_ITS_OWN = `${SHOWN_WITHOUT_ANSWER}
      IF r.fingerprint = p_fingerprint THEN${indentLines(ANSWER_SHOWN)}
      END IF;`

/** The owner died or stalled, or the attempt failed and may have had its effect. */
export const IS_UNKNOWN = `(
      (r.state = 'in-flight' AND now >= r.lease_until) OR (r.state = 'failed' AND r.uncertain)
    )`
