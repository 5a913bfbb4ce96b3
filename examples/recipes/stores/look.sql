SELECT name, state, attempt, uncertain, to_timestamp(lease_until / 1000) AS lease_until,
  to_timestamp(expires_at / 1000) AS expires_at
FROM once_per_key.records
WHERE id = sha256('acme:order-1001');
