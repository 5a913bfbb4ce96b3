import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { IdempotencyError, type JsonRunner, RefusedError } from 'once-per-key/run'
import { z } from 'zod'

export interface Bank {
  transfer(amount: number, idempotencyKey: string): Promise<{ readonly id: string }>
}

interface Parts {
  readonly once: JsonRunner
  readonly bank: Bank
  /** Whose orders these are: the account that signed in, never something that the model says. */
  readonly account: string
}

/** The tools of a shop's agent, for one session. The order comes from the shop, so every try to pay it has the same key. */
export function paymentsServer({ once, bank, account }: Parts): McpServer {
  const server = new McpServer({ name: 'payments', version: '1.0.0' })
  server.registerTool(
    'create_payment',
    {
      description:
        'Pays an open order, once. If a call fails or gives no result, call it again with exactly the same arguments: it pays no second time.',
      inputSchema: z.object({
        order_id: z.string().min(1).max(255).describe('As list_orders shows it'),
        amount: z.number().int().positive(),
      }),
      annotations: { idempotentHint: true },
    },
    async ({ order_id, amount }) => {
      try {
        const payment = await once({ scope: account, key: order_id, input: { amount } }, async (operation) => {
          return bank.transfer(amount, operation.deriveKey('transfer'))
        })
        return { content: [{ type: 'text', text: `Paid: ${payment.id}` }], structuredContent: { ...payment } }
      } catch (error) {
        return refusal(error)
      }
    },
  )
  return server
}

/** What a model can act on: it waits and repeats the call, or it stops. */
function refusal(error: unknown): CallToolResult {
  if (error instanceof IdempotencyError && error.code === 'arguments_invalid') {
    return told(
      error.code,
      null,
      'Stop: this order_id is not a valid one, so nothing was paid. Take it from list_orders.',
    )
  }
  if (!(error instanceof RefusedError)) {
    return told('unknown', 0, 'It is not known whether the order was paid. Call again with exactly the same arguments.')
  }
  const { code, retryAfterMs } = error
  if (retryAfterMs !== null) {
    const seconds = Math.ceil(retryAfterMs / 1_000)
    return told(
      code,
      seconds,
      `Wait ${seconds} s, then call again with exactly the same arguments. Do not start another payment.`,
    )
  }
  if (code === 'mismatched')
    return told(code, null, 'Stop: a payment of this order was begun with another amount. Ask the user.')
  return told(
    code,
    null,
    'Stop: do not call again, and do not pay in another way. Tell the user that a person must look at this payment.',
  )
}

/** A tool with an `outputSchema` leaves `structuredContent` out here: clients validate it, and a refusal has another shape. */
function told(code: string, retryAfterSeconds: number | null, text: string): CallToolResult {
  return { isError: true, content: [{ type: 'text', text }], structuredContent: { code, retryAfterSeconds } }
}
