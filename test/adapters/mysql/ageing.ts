import type { Pool } from 'mysql2/promise'

/**
 * Makes records older: what is left of their leases and of their retentions gets shorter by `ms`. To the commands it is as if the
 * database's clock, which cannot be moved, had moved on.
 */
export async function age(pool: Pool, keys: readonly string[], ms: number): Promise<void> {
  await pool.query(
    `UPDATE once_per_key_records SET lease_until = lease_until - ?, expires_at = expires_at - ?
     WHERE id IN (${keys.map(() => 'UNHEX(SHA2(?, 256))').join(', ')})`,
    [ms, ms, ...keys],
  )
}
