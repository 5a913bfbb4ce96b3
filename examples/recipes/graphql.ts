import { MemoryStore } from 'once-per-key/memory'
import { RefusedError, runner } from 'once-per-key/run'

/** What your server makes for each request. */
interface Context {
  readonly accountId: string
}

interface PaymentInput {
  readonly key: string
  readonly amount: number
}

const once = runner({ store: new MemoryStore(), name: 'createPayment' })

/** `createPayment(key: ID!, amount: Int!): Payment!` */
export const resolvers = {
  Mutation: {
    async createPayment(_parent: unknown, { key, amount }: PaymentInput, { accountId }: Context) {
      try {
        return await once({ scope: accountId, key, input: { amount } }, async (operation) => ({
          id: operation.deriveKey('payment'),
          amount,
        }))
      } catch (error) {
        if (!(error instanceof RefusedError)) throw error
        const { code, retryAfterMs, message } = error
        throw Object.assign(new Error(message), { extensions: { code, retryAfterMs } }) // as GraphQLError has them
      }
    },
  },
}
