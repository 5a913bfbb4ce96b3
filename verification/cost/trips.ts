import type pg from 'pg'

/** How many trips the clients of a pool have made so far: Postgres says once for each that it is ready, however much was in it. */
export function countTrips(pool: pg.Pool): () => number {
  let trips = 0
  pool.on('connect', (client) => connectionOf(client).on('readyForQuery', () => trips++))
  return () => trips
}

/** Not in the types of `pg`. */
function connectionOf(client: pg.PoolClient): { on(event: 'readyForQuery', listener: () => void): void } {
  return (client as unknown as { readonly connection: ReturnType<typeof connectionOf> }).connection
}
