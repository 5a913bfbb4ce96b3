import { initTRPC, TRPCError } from '@trpc/server'
import { type JsonRunner, RefusedError } from 'once-per-key/run'
import { z } from 'zod'

interface Bank {
  transfer(amount: number, idempotencyKey: string): Promise<{ readonly id: string }>
}

/** What your server makes for each request. */
interface Context {
  readonly accountId: string
}

const t = initTRPC.context<Context>().create()

/** `once` is a `runner` with a name of its own, such as `createPayment`. */
export const keyedRouter = (once: JsonRunner, bank: Bank) =>
  t.router({
    createPayment: t.procedure
      .input(z.object({ key: z.string().min(1).max(255), amount: z.number().int().positive() }))
      .mutation(async ({ input: { key, ...input }, ctx }) => {
        try {
          return await once({ scope: ctx.accountId, key, input }, (operation) =>
            bank.transfer(input.amount, operation.deriveKey('transfer')),
          )
        } catch (error) {
          if (!(error instanceof RefusedError)) throw error
          const code = error.code === 'store_unavailable' ? 'SERVICE_UNAVAILABLE' : 'CONFLICT'
          throw new TRPCError({ code, message: error.message, cause: error })
        }
      }),
  })
