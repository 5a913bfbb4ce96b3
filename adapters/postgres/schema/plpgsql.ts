/**
 * What the functions are made of. Each names everything by its schema, so no `search_path` matters. In all of them `r` is
 * the record as it was read, and `n` the record as it is to be.
 */

/** The format of the records that these functions write, and the only one that they read. */
export const FORMAT = 1

/**
 * Every command's result: one row. As text but for the body, since clients differ in what they make of other types; and in
 * words of one piece, since some rewrite the names of columns.
 */
const REPLY = `OUT reply text, OUT fingerprint text, OUT attempt text, OUT uncertain text, OUT lease text, OUT status text,
  OUT head text, OUT body bytea`

/** How long a command waits for a transaction that holds its row; then it fails, and is sent again later. */
export const COMMAND_WAITS = '1s'

/** A claim holds one of few connections while it waits, and a row that is held means that the key is in flight. */
export const CLAIM_WAITS = '250ms'

/** The parameters with which an owner shows what it is. */
export const OWNERSHIP =
  'p_key text, p_token text, p_fingerprint text, p_attempt bigint, p_uncertain boolean, p_retention_ms bigint'

/** The parameters that are an answer, in the columns in which it is kept. */
export const ANSWER = 'p_status integer, p_head text, p_body bytea'

/**
 * A small table would be read as a whole, and under SERIALIZABLE whoever reads a whole table aborts transactions of
 * strangers.
 */
export const BY_INDEX = 'SET enable_seqscan = off'

/** Of the statement, not of its transaction, which may have begun long before; to the millisecond, as durations are. */
export const NOW = `now CONSTANT timestamptz := date_trunc('milliseconds', statement_timestamp());`

/** A storage key may be longer than an index takes. */
export const RECORD_ID = `record_id CONSTANT bytea := sha256(convert_to(p_key, 'UTF8'));`

interface Command {
  readonly name: string
  readonly parameters: string
  /** 'STABLE': it changes nothing. */
  readonly volatility?: 'VOLATILE' | 'STABLE'
  readonly waits?: string
  readonly declare?: string
  readonly body: string
}

export function command(
  schema: string,
  { name, parameters, volatility = 'VOLATILE', waits = COMMAND_WAITS, declare = '', body }: Command,
): string {
  return `
CREATE OR REPLACE FUNCTION ${schema}.${name}(
  ${parameters},
  ${REPLY}
) LANGUAGE plpgsql ${volatility} ${BY_INDEX} SET lock_timeout = '${waits}'
AS $body$
DECLARE
  ${RECORD_ID}
  ${NOW}
  r ${schema}.records;
  n ${schema}.records;
  stored boolean; -- there is a row,
  unexpired boolean; -- and it is a record${declare}
BEGIN${body}
END
$body$;
`
}

/** The same lines, one step further to the right. */
export function deeper(lines: string): string {
  return lines.replaceAll('\n', '\n  ')
}

export function after(durationMs: string): string {
  return `now + ${durationMs} * interval '1 millisecond'`
}

/** On a replica even a refusal would come from an old state. */
export const ON_A_PRIMARY = `
  IF current_setting('transaction_read_only') = 'on' THEN
    RAISE EXCEPTION USING ERRCODE = 'read_only_sql_transaction',
      MESSAGE = 'once-per-key: this session is read-only, or of a replica';
  END IF;`

/** A confirmed command survives a crash of the server, also where the database's default is not to wait for its log. */
export const DURABLY = `
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;`

/** Without a lock: whoever does not write waits for nobody. */
export function read(schema: string): string {
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
 * Reads, decides, and writes only where the row still is what the decision was made on; else again. Nothing less would do:
 * a row that is locked for a moment is neither free nor in flight.
 */
export function untilUnchanged(schema: string, decideAndWrite: string): string {
  return `${ON_A_PRIMARY}
  FOR turn IN 1..20 LOOP${read(schema)}
${decideAndWrite}
  END LOOP;
  RAISE EXCEPTION USING ERRCODE = 'serialization_failure',
    MESSAGE = 'once-per-key: the record changed again and again while this command was to change it';`
}

/** The row `t` still is what was read, in all that a decision depends on; what an answer is depends on its owner. */
export const UNCHANGED = `t.id = record_id AND t.token = r.token AND t.state = r.state AND t.uncertain = r.uncertain
        AND t.lease_until IS NOT DISTINCT FROM r.lease_until AND t.expires_at = r.expires_at`

/** Writes `n`, and returns where that was possible. */
export function write(schema: string): string {
  return `${deeper(DURABLY)}
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
      RETURN;
    END IF;`
}

/** Shows the record, but for its answer. */
export const SHOWN_WITHOUT_ANSWER = `
      reply := r.state; fingerprint := r.fingerprint; attempt := r.attempt::text; uncertain := r.uncertain::text;
      lease := (extract(epoch FROM r.lease_until - now) * 1000)::bigint::text;`

const ANSWER_SHOWN = `
      status := r.status::text; head := r.head; body := r.body;`

export const SHOWN = `${SHOWN_WITHOUT_ANSWER}${ANSWER_SHOWN}`

/** An answer is shown to its own fingerprint alone. */
export const SHOWN_TO_ITS_OWN = `${SHOWN_WITHOUT_ANSWER}
      IF r.fingerprint = p_fingerprint THEN${deeper(ANSWER_SHOWN)}
      END IF;`

/** It died, stalled, or failed in a way that leaves its effect open. */
export const IS_UNKNOWN = `(
      (r.state = 'in-flight' AND now >= r.lease_until) OR (r.state = 'failed' AND r.uncertain)
    )`
