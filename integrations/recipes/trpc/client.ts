import {
  createTRPCClient,
  httpBatchLink,
  httpLink,
  retryLink,
  splitLink,
  type TRPCClient,
  type TRPCClientError,
} from '@trpc/client'
import type { PaymentsRouter } from './server.js'

/**
 * `client.createPayment.mutate({ amount }, { context: { key } })`: each try of the operation has its key. Without a key it is sent
 * once.
 */
export function paymentsClient(url: string, headers: Record<string, string> = {}): TRPCClient<PaymentsRouter> {
  return createTRPCClient<PaymentsRouter>({
    links: [
      splitLink({
        condition: ({ type }) => type === 'mutation',
        true: [
          retryLink({
            retry: ({ op, error, attempts }) => hasKey(op) && attempts < 8 && isWorthATry(error),
            retryDelayMs: (attempts) => 500 * 2 ** attempts,
          }),
          httpLink({
            url,
            headers: ({ op }) => ({ ...headers, ...(hasKey(op) && { 'Idempotency-Key': op.context.key }) }),
          }),
        ],
        false: httpBatchLink({ url, headers }),
      }),
    ],
  })
}

interface Keyed {
  readonly context: { readonly key: string }
}

/** Without a key, a second request could pay a second time. */
function hasKey(op: { readonly context: { readonly key?: unknown } }): op is Keyed {
  return typeof op.context.key === 'string' && op.context.key !== ''
}

function isWorthATry({ meta }: Pick<TRPCClientError<PaymentsRouter>, 'meta'>): boolean {
  const { response } = (meta ?? {}) as { readonly response?: Response }
  if (response === undefined || response.ok) return true // nobody knows, or it broke off: the key makes it safe
  const word = response.headers.get('X-Should-Retry') // the server's word, where it gives one
  return word ? word === 'true' : [408, 429].includes(response.status) || response.status >= 500
}
