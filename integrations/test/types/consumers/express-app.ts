import express, { type NextFunction, type Request, type Response } from 'express'
import { contextOf, IdempotencyError, type IdempotencyRequest, idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'

declare global {
  namespace Express {
    interface Request {
      merchantId?: string
      accountId: string
    }
  }
}

const store = new MemoryStore()
const app = express()
const router = express.Router()

// What the application declares is typed: optional, required, and not at all.
const once = idempotency({ store, scope: (req) => req.merchantId })
idempotency({ store, scope: (req) => req.accountId })
idempotency({ store, scope: async (req) => req.merchantId ?? null })
idempotency({ store, scope: (req) => req.get('X-Account') })
idempotency({ store, scope: (req: Request) => req.accountId })
idempotency<IdempotencyRequest>({ store, scope: ({ merchantId }) => merchantId, skip: ({ body }) => body.dryRun })
// @ts-expect-error nobody declared it
idempotency({ store, scope: (req) => req.tenantId })
// @ts-expect-error a string, and no `any`
idempotency({ store, scope: (req) => req.merchantId, skip: (req): boolean => req.accountId })

// Wherever Express takes middleware.
app.use(once)
app.use('/api', express.json(), once, router)
app.use('/api', [express.json(), once])
app.post('/payouts', once, createPayout)
app.post('/payouts/:id', express.json(), once, async (req, res) => {
  const id: string = req.params.id
  const attempt: number | undefined = req.idempotency?.attempt
  req.idempotency?.mayHaveEffect()
  // @ts-expect-error a request without a key has none
  req.idempotency.attempt
  res.status(201).json({ id, attempt, key: req.idempotency?.deriveKey('bank transfer') })
})
router.put('/payouts/:id', once, createPayout)
router.patch('/payouts/:id', once, createPayout)
app.route('/payouts/:id').delete(once, createPayout)

interface Payout {
  readonly amount: number
}

function createPayout(req: Request<{ id?: string }, Payout, Payout>, res: Response<Payout>): void {
  const signal: AbortSignal | undefined = req.idempotency?.signal
  const outcome: 'none' | 'failed' | 'unknown' | undefined = req.idempotency?.previousOutcome
  const attempt: number = contextOf(req).attempt // behind `required: true`
  console.log(attempt)
  if (!signal?.aborted && outcome !== 'unknown') res.json({ amount: req.body.amount })
}

app.use((error: unknown, _req: Request, res: Response, next: NextFunction) => {
  if (error instanceof IdempotencyError && error.code === 'scope_invalid') res.status(500).send(error.message)
  else next(error)
})

const server = app.listen(0)
server.close(() => once.idle().then(() => store.clear()))
