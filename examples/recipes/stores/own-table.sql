CREATE TABLE idempotency_records (
  id bytea PRIMARY KEY,
  key text NOT NULL,
  record text NOT NULL,
  version uuid NOT NULL DEFAULT gen_random_uuid(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX ON idempotency_records (expires_at);
