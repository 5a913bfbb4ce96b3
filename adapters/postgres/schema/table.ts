import { FORMAT } from './plpgsql.js'

/**
 * The table, and a row with the progress of the sweep. Half of each page stays free and only `id` is indexed, so
 * updates stay within their page and no index grows. The checks are those of format 1, and apply to every writer.
 */
export function tables(schema: string): string {
  return `
CREATE TABLE IF NOT EXISTS ${schema}.records (
  id bytea PRIMARY KEY,
  name text NOT NULL,
  format smallint NOT NULL,
  state text NOT NULL,
  token text NOT NULL,
  fingerprint text,
  attempt bigint NOT NULL,
  uncertain boolean NOT NULL,
  lease_until timestamptz,
  expires_at timestamptz NOT NULL,
  status integer,
  head text,
  body bytea,
  CONSTRAINT records_format_1 CHECK (format <> ${FORMAT} OR CASE state
    WHEN 'in-flight' THEN fingerprint IS NOT NULL AND lease_until IS NOT NULL
      AND status IS NULL AND head IS NULL AND body IS NULL
    WHEN 'completed' THEN fingerprint IS NOT NULL AND NOT uncertain AND lease_until IS NULL
      AND status IS NOT NULL AND head IS NOT NULL
    WHEN 'failed' THEN (fingerprint IS NOT NULL) = uncertain AND lease_until IS NULL
      AND status IS NULL AND head IS NULL AND body IS NULL
    ELSE false
  END)
) WITH (fillfactor = 50);

COMMENT ON TABLE ${schema}.records IS
  'once-per-key: one row per record. Only the functions of this schema change it. id is sha256(name); name is the storage key; in every format, a row stops being a record once expires_at has passed.';
COMMENT ON COLUMN ${schema}.records.head IS 'The reason phrase and the headers of the answer, as JSON.';
COMMENT ON COLUMN ${schema}.records.body IS 'NULL with state completed: the answer was not kept.';

ALTER TABLE ${schema}.records ADD COLUMN IF NOT EXISTS has_steps boolean;

CREATE TABLE IF NOT EXISTS ${schema}.steps (
  record bytea NOT NULL,
  label text NOT NULL,
  position bigint GENERATED ALWAYS AS IDENTITY,
  step_order bigint NOT NULL,
  state text NOT NULL CHECK (state IN ('begun', 'done', 'undone', 'rerun')),
  result bytea,
  PRIMARY KEY (record, label)
);

COMMENT ON TABLE ${schema}.steps IS
  'once-per-key: one row per step of an operation, beside its record and gone with it. label is JSON; the row without one is an operator''s mark.';
CREATE OR REPLACE FUNCTION ${schema}.steps_gone_v1() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    DELETE FROM ${schema}.steps;
  ELSE
    DELETE FROM ${schema}.steps s WHERE s.record = OLD.id;
  END IF;
  RETURN NULL;
END
$body$;

CREATE OR REPLACE TRIGGER steps_gone AFTER DELETE ON ${schema}.records
  FOR EACH ROW WHEN (OLD.has_steps) EXECUTE FUNCTION ${schema}.steps_gone_v1();
CREATE OR REPLACE TRIGGER steps_emptied AFTER TRUNCATE ON ${schema}.records
  FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.steps_gone_v1();

COMMENT ON COLUMN ${schema}.steps.result IS 'NULL with state done: the result was not kept.';

CREATE TABLE IF NOT EXISTS ${schema}.sweeps (
  id smallint PRIMARY KEY CHECK (id = 1),
  next_block bigint NOT NULL,
  due_at timestamptz NOT NULL
) WITH (fillfactor = 50);

INSERT INTO ${schema}.sweeps (id, next_block, due_at) VALUES (1, 0, '-infinity') ON CONFLICT DO NOTHING;
`
}
