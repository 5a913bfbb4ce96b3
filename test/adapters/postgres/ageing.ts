import type { Pool } from 'pg'

/**
 * Makes records older: what is left of their leases and of their retentions gets shorter by `ms`. To the commands it is as
 * if the database's clock, which cannot be moved, had moved on.
 */
export async function age(pool: Pool, keys: readonly string[], ms: number): Promise<void> {
  await pool.query(
    'UPDATE once_per_key.records SET lease_until = lease_until - $1, expires_at = expires_at - $1 WHERE name = ANY ($2)',
    [ms, keys],
  )
}
