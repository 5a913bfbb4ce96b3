import express, { type ErrorRequestHandler } from 'express'
import { contextOf, idempotency, singleTenant } from 'once-per-key'
import { PostgresStore } from 'once-per-key/postgres'
import type { Pool } from 'pg'

/** `commands`: a small pool of the store's own, 2 to 5 connections. */
export async function payoutsApp(application: Pool, commands: Pool) {
  const store = new PostgresStore({ pool: commands, transactions: application })
  await store.migrate()
  const once = idempotency({ store, scope: singleTenant, required: true, effects: 'in-transaction' })

  const app = express()
  app.post('/payouts', express.json(), once, async (req, res) => {
    const { amount } = req.body as { amount: number }
    await store.transaction(contextOf(req), async (tx) => {
      const { rows } = await tx.query('INSERT INTO payouts (amount) VALUES ($1) RETURNING id', [amount])
      res.status(201).json({ id: rows[0].id })
    })
  })
  app.use(lostRace)
  return app
}

/** Another attempt has won. That is no failure, and need not be logged: whatever is sent here, the client gets what that one has made. */
const lostRace: ErrorRequestHandler = (error, _req, res, next) =>
  error?.code === 'operation_taken' ? res.end() : next(error)
