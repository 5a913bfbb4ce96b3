SELECT name, state, attempt, uncertain, lease_until, expires_at
FROM once_per_key.records
WHERE id = sha256('acme:order-1001');
