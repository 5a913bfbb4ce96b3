// With the types of `pg`: its pool, and no single client.
import { PostgresStore } from 'once-per-key/postgres'
import { Client, Pool } from 'pg'

export const store = new PostgresStore({ pool: new Pool({ max: 4 }) })

const pool = new Pool()
export const other = new PostgresStore({ query: (text, values) => pool.query(text, values) })

// @ts-expect-error a single client
new PostgresStore({ pool: new Client() })
