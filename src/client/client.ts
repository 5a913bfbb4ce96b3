import { type OperationInProgress, type Outcome, runOperation } from './call.js'
import { type ClientOptions, resolveClientOptions } from './options.js'
import type { TryResult } from './reply.js'
import { runWithTimeLimit, toRepeatableRequest } from './request.js'

export interface Client {
  /**
   * Sends an operation until its outcome is known, or the time or the tries are used up.
   *
   * @param operation the application's own name of the operation, for example `pay order-1001`. The same name has the
   * same key in every try and every call, also after a reload, until the outcome is settled. A call while another call
   * for it is in progress gets the same outcome; nothing is sent twice.
   * @param init as for `fetch`; the default method is `POST`. `signal` ends this call with `unknown`; the tries
   * go on while another call waits for them.
   * @throws TypeError for misuse: an operation without a name, a stream as body, an object that `fetch` would send as `[object Object]`,
   * an `Idempotency-Key` header, the mode `no-cors`, what `fetch` would refuse, a request that has another address, method, header or body object than the one in progress, or a storage that
   * does not return the key that it was given. Nothing was sent. An error of the storage is rethrown: if it could not store a
   * new key, nothing was sent; if it could not remove one, the operation was refused.
   */
  send(operation: string, url: string | URL, init?: RequestInit): Promise<Outcome>

  /**
   * Forgets the key of an operation: from now on, the same name is a new operation. Call it after you have saved the
   * response of `done`, or resolved an unknown outcome. If `keys` is a function it does nothing.
   *
   * Another client over the same storage that has sent under the key goes on with it until its own `forget`.
   * @throws what the storage throws, or a `TimeoutError` after `totalTimeoutMs`: the key may still be stored.
   */
  forget(operation: string): Promise<void>
}

/**
 * `fetch` with an `Idempotency-Key`: one key for each operation, stored before the first try and kept until the outcome
 * is settled, and retries that obey `Retry-After` and `X-Should-Retry`. All tries use the same key.
 *
 * @example
 * const client = createClient({ keys: localStorage })
 * const end = await client.send('pay order-1001', '/payouts', { body, headers: { 'Content-Type': 'application/json' } })
 * if (end.outcome === 'done') {
 *   show(await end.response.json())
 *   await client.forget('pay order-1001')
 * }
 * @throws TypeError, RangeError for invalid options.
 */
export function createClient(options: ClientOptions): Client {
  const rules = resolveClientOptions(options)
  /** The calls in progress, by operation. */
  const underWay = new Map<string, OperationInProgress>()

  return {
    async send(operation, url, init = {}) {
      if (typeof operation !== 'string' || !operation) throw new TypeError('The operation needs a name.')
      const { body, signal } = init // First: of what fails here, nothing has begun.
      const request = toRepeatableRequest(url, init)
      const call: OperationInProgress = underWay.get(operation) ?? {
        request,
        body,
        stop: new AbortController(),
        waiting: 0,
        last: {},
      }
      underWay.set(operation, call)
      call.waiting++
      try {
        const end = await runWithTimeLimit(rules.totalTimeoutMs, signal, async () => {
          const [first, own] = await Promise.all([call.request, request])
          if (first.head !== own.head || call.body !== body) {
            throw new TypeError('One is in progress.')
          }
          call.end ??= runOperation(rules, operation, first, call)
          return call.end
        })
        // Each caller gets a copy, because a body can be read only once.
        return { outcome: 'unknown', ...call.last, ...end, response: call.last.response?.clone() } as Outcome
      } finally {
        if (!--call.waiting) {
          call.stop.abort()
          underWay.delete(operation)
        }
      }
    },

    async forget(operation) {
      const end = await runWithTimeLimit(rules.totalTimeoutMs, null, (signal) => rules.keys.end(operation, signal))
      if ((end as TryResult | undefined)?.cause) throw (end as TryResult).cause
    },
  }
}
