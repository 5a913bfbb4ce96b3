SELECT CONVERT(state USING utf8mb4) AS state, attempt, uncertain, FROM_UNIXTIME(lease_until / 1000) AS lease_until
FROM once_per_key_records
WHERE id = UNHEX(SHA2('acme:order-1001', 256));
