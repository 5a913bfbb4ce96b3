// DATABASE_URL=postgres://localhost/payouts npm start
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgTable, uuid } from 'drizzle-orm/pg-core'
import express from 'express'
import { contextOf, idempotency, singleTenant } from 'once-per-key'
import { PostgresStore } from 'once-per-key/postgres'
import { Pool } from 'pg'

const connectionString = process.env.DATABASE_URL
const commands = new Pool({ connectionString, max: 4 }) // for the store alone
const application = new Pool({ connectionString })
// A connection that breaks must not end the process, be it idle or in a transaction.
for (const pool of [commands, application]) pool.on('error', console.error)
application.on('connect', (client) => client.on('error', console.error))

const db = drizzle(application)
const payouts = pgTable('payouts', { id: uuid().primaryKey(), amount: integer().notNull() })
await db.execute(sql`CREATE TABLE IF NOT EXISTS payouts (id uuid PRIMARY KEY, amount integer NOT NULL)`)

const store = new PostgresStore({
  pool: commands,
  transactions: {
    transaction: (work, options) => db.transaction(work, options),
    run: (tx, { strings, values }) => tx.execute(sql(strings, ...values)),
  },
})
await store.migrate()

const once = idempotency({ store, scope: singleTenant, required: true })

const app = express()
app.post('/payouts', express.json(), once, async (req, res) => {
  // The payout and the record of the key are committed together, or neither is.
  const context = contextOf(req)
  await store.transaction(context, async (tx) => {
    const id = context.deriveKey('payout')
    const [payout] = await tx.insert(payouts).values({ id, amount: req.body.amount }).returning()
    res.status(201).json(payout) // leaves after the COMMIT
  })
})

app.listen(process.env.PORT ?? 3000, (error) => {
  if (error) throw error // the port is taken
  console.log('ready')
})
