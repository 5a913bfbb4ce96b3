// What the README's first example takes from the application. Compiled, not run.
declare global {
  namespace Express {
    interface Request {
      merchantId?: string
    }
  }
}
declare const authenticate: express.RequestHandler
declare const bank: { transfer(order: unknown, options: { idempotencyKey: string | undefined }): Promise<object> }

// README: the first example
import express from 'express'
import { idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'

const app = express()
const once = idempotency({ store: new MemoryStore(), scope: (req) => req.merchantId })

app.post('/payouts', authenticate, express.json(), once, async (req, res) => {
  const key = req.idempotency?.deriveKey('bank transfer') // the same on every attempt
  res.status(201).json(await bank.transfer(req.body, { idempotencyKey: key }))
})
