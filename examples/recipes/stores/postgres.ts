import { PostgresStore } from 'once-per-key/postgres'
import { Pool } from 'pg'

/** For the store alone: handlers that hold every connection of a shared pool would starve the store's commands. */
export const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 4 })
pool.on('error', (error) => console.error('an idle connection was lost', error)) // without a listener the process ends
export const store = new PostgresStore({ pool })

await store.migrate() // or give PostgresStore.schemaSql() to your migration tool
