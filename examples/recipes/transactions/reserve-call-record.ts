import express from 'express'
import { idempotency, singleTenant } from 'once-per-key'
import { PostgresStore } from 'once-per-key/postgres'
import { Pool } from 'pg'

const { DATABASE_URL: connectionString, BANK_URL, PORT = '3000' } = process.env

const application = new Pool({ connectionString })
// An idle connection that breaks must not end the process.
application.on('error', () => {})
const commands = new Pool({ connectionString, max: 3 })
commands.on('error', () => {})

const store = new PostgresStore({ pool: commands, transactions: application })
await store.migrate()
await application.query(
  'CREATE TABLE IF NOT EXISTS payouts (id uuid PRIMARY KEY, amount integer NOT NULL, transfer text)',
)

const once = idempotency({ store, scope: singleTenant, required: true })

const app = express()
app.post('/payouts', express.json(), once, async (req, res) => {
  const run = req.idempotency
  if (run === undefined) throw new Error('The key is required.')
  const { amount } = req.body as { amount: number }
  // The same for every attempt of this key.
  const id = run.deriveKey('payout')

  // Reserve: committed now, so that the books show what is in progress. A later attempt does not repeat it.
  await store.step(run, 'reserve', async (tx) => {
    await tx.query('INSERT INTO payouts (id, amount) VALUES ($1, $2)', [id, amount])
  })

  // Call: no connection is held here. The bank knows a second call by its key, and a later attempt has the result.
  const { transfer } = await run.step('transfer', async ({ key, signal }) => {
    const response = await fetch(`${BANK_URL}/transfers`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key },
      body: JSON.stringify({ amount }),
      signal,
    })
    if (!response.ok) throw new Error(`The bank answered ${response.status}.`)
    return (await response.json()) as { transfer: string }
  })

  // Record: the row and the record of the key commit together, and then the answer leaves.
  await store.transaction(run, async (tx) => {
    await tx.query('UPDATE payouts SET transfer = $2 WHERE id = $1', [id, transfer])
    res.status(201).json({ id, transfer })
  })
})

app.listen(Number(PORT), '127.0.0.1', (error) => {
  if (error) throw error
  console.log('listening')
})
