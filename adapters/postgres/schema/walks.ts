import { BY_INDEX, FORMAT, IS_UNKNOWN, NOW, SHOWN_WITHOUT_ANSWER } from './plpgsql.js'

/**
 * Functions that walk through the table, one range of pages per step: an index by expiry or state would be written by
 * each command. A range is read by physical row location (Postgres 14 and later), so a step costs the same in a large
 * table.
 */
export function buildWalksSql(schema: string): string {
  return `
CREATE OR REPLACE FUNCTION ${schema}.sweep_v1(p_from bigint, p_blocks bigint, OUT removed text, OUT block text)
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $body$
DECLARE
  ${NOW}${blockRangeVariablesSql(schema)}
  rows bigint;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  DELETE FROM ${schema}.records t WHERE t.ctid = ANY (ARRAY(
    SELECT e.ctid FROM ${schema}.records e
    WHERE e.ctid >= first AND e.ctid < beyond AND e.expires_at <= now
    FOR UPDATE SKIP LOCKED
  ));
  GET DIAGNOSTICS rows = ROW_COUNT;
  removed := rows::text;
  block := onward::text;
END
$body$;

CREATE OR REPLACE FUNCTION ${schema}.sweep_in_turn_v1(
  p_blocks bigint, p_pause_ms bigint, p_rest_ms bigint, OUT turn text, OUT removed text
) LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $body$
DECLARE
  ${NOW}
  s ${schema}.sweeps;
  swept record;
BEGIN
  INSERT INTO ${schema}.sweeps (id, next_block, due_at) SELECT 1, 0, '-infinity'
  WHERE NOT EXISTS (SELECT FROM ${schema}.sweeps t WHERE t.id = 1) ON CONFLICT DO NOTHING;
  SELECT t.* INTO s FROM ${schema}.sweeps t WHERE t.id = 1 FOR UPDATE SKIP LOCKED;
  IF NOT FOUND OR now < s.due_at THEN
    turn := 'others'; removed := '0';
    RETURN;
  END IF;
  SELECT * INTO swept FROM ${schema}.sweep_v1(s.next_block, p_blocks);
  UPDATE ${schema}.sweeps t SET
    next_block = coalesce(swept.block::bigint, 0),
    due_at = now + CASE WHEN swept.block IS NULL THEN p_rest_ms ELSE p_pause_ms END * interval '1 millisecond'
  WHERE t.id = 1;
  turn := CASE WHEN swept.block IS NULL THEN 'last' ELSE 'ours' END;
  removed := swept.removed;
END
$body$;

${listFunctionSql(schema, { name: 'list_v1', isListed: IS_UNKNOWN })}
${listFunctionSql(schema, {
  name: 'list_scope_v1',
  parameters: 'p_start text, ',
  columns: '\n  OUT status text, OUT head text, OUT body bytea,',
  isListed: 'starts_with(r.name, p_start)',
  more: FORGOTTEN_SHOWN,
  unreadable: `
    ELSIF now < r.expires_at AND starts_with(r.name, p_start) THEN
      unread := unread || r.name;`,
})}`
}

/** The answer, if nothing of it is kept. */
const FORGOTTEN_SHOWN = `
      status := NULL; head := NULL;
      IF r.state = 'completed' AND r.body IS NULL AND r.head = '["",[]]' THEN
        status := r.status::text; head := r.head;
      END IF;`

interface Listing {
  readonly name: string
  readonly parameters?: string
  readonly columns?: string
  readonly isListed: string
  readonly more?: string
  /** What is done with a record of another format. */
  readonly unreadable?: string
}

function listFunctionSql(
  schema: string,
  { name, parameters = '', columns = '', isListed, more = '', unreadable = '' }: Listing,
): string {
  return `CREATE OR REPLACE FUNCTION ${schema}.${name}(
  ${parameters}p_from bigint, p_blocks bigint, OUT reply text, OUT name text, OUT fingerprint text, OUT attempt text,
  OUT uncertain text, OUT lease text, OUT retention text,${columns} OUT block text
) RETURNS SETOF record LANGUAGE plpgsql STABLE ${BY_INDEX}
AS $body$
DECLARE
  ${NOW}${blockRangeVariablesSql(schema)}
  r ${schema}.records;
  unread text[] := '{}';
BEGIN
  FOR r IN SELECT t.* FROM ${schema}.records t WHERE t.ctid >= first AND t.ctid < beyond LOOP
    IF now < r.expires_at AND r.format = ${FORMAT} AND ${isListed} THEN${SHOWN_WITHOUT_ANSWER}${more}
      name := r.name;
      retention := ceil(extract(epoch FROM r.expires_at - now) * 1000)::bigint::text;
      RETURN NEXT;${unreadable}
    END IF;
  END LOOP;
  reply := to_json(unread)::text; block := onward::text;
  RETURN NEXT;
END
$body$;
`
}

/** The pages of this step, and the start of the next one; null after the last. */
const blockRangeVariablesSql = (schema: string) => `
  blocks CONSTANT bigint := pg_relation_size('${schema}.records'::regclass) / current_setting('block_size')::bigint;
  first CONSTANT tid := format('(%s,0)', least(p_from, 4294967295))::tid;
  beyond CONSTANT tid := format('(%s,0)', least(p_from + p_blocks, 4294967295))::tid;
  onward CONSTANT bigint := CASE WHEN p_from + p_blocks < blocks THEN p_from + p_blocks END;`
