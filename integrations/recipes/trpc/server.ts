import { initTRPC } from '@trpc/server'
import { createExpressMiddleware } from '@trpc/server/adapters/express'
import express, { type Express, type Request, type RequestHandler } from 'express'
import { idempotency, type Problem, type Store } from 'once-per-key'
import { z } from 'zod'

interface Bank {
  transfer(amount: number, idempotencyKey?: string): Promise<{ readonly id: string }>
}

interface Parts {
  readonly bank: Bank
  readonly store: Store
  /** Sets `req.merchantId`. */
  readonly authenticate: RequestHandler
}

const contextOf = ({ req }: { readonly req: Request }) => ({ operation: req.idempotency })

const t = initTRPC.context<typeof contextOf>().create()

export const paymentsRouter = (bank: Bank) =>
  t.router({
    createPayment: t.procedure
      .input(z.object({ amount: z.number().int().positive() }))
      .mutation(({ input, ctx }) => bank.transfer(input.amount, ctx.operation?.deriveKey('transfer'))),
  })

export type PaymentsRouter = ReturnType<typeof paymentsRouter>

export function paymentsApp({ bank, store, authenticate }: Parts): Express {
  const once = idempotency({ store, scope: (req) => req.merchantId, renderProblem: inTRPC })
  const serve = createExpressMiddleware({ router: paymentsRouter(bank), createContext: contextOf })
  return express().use('/trpc', authenticate, express.json(), once, serve)
}

/** Refusals in the form of tRPC's errors, which its client understands: `error.data.code` is the problem's. */
function inTRPC({ code, status, detail }: Problem) {
  const error = { message: detail, code: -32000, data: { code, httpStatus: status } }
  return { contentType: 'application/json', body: { error } }
}
