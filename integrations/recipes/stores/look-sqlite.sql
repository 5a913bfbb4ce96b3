SELECT key, state, attempt, uncertain, datetime(lease_until / 1000, 'unixepoch') AS lease_until
FROM once_per_key_records
WHERE key = 'acme:order-1001';
