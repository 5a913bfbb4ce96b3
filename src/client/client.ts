import { carryOut } from './call.js'
import { forgetKey } from './keys.js'
import { type ClientOptions, rulesOf } from './options.js'
import type { Outcome } from './outcome.js'

export interface Client {
  /**
   * Sends an operation until its outcome is known, or the time or the tries are over.
   *
   * @param operation the application's own name of what is done once, such as `pay order-1001`. The same name is the same key
   * in every try and every call, also after a reload, until the outcome is settled. A call while another one for it is under
   * way gets that one's outcome; nothing is sent twice.
   * @param init as of `fetch`; the method is `POST` unless it says otherwise. `signal` ends the call with `unknown`.
   * @throws TypeError misuse: a body that is a stream, an `Idempotency-Key` header, the mode `no-cors`, what `fetch` would
   * refuse, or another request for an operation that is under way. Nothing was sent. An error of the storage is thrown as it
   * is: where it cannot keep a new key, nothing was sent; where it cannot remove one, the operation was refused.
   */
  send(operation: string, url: string | URL, init?: RequestInit): Promise<Outcome>

  /**
   * Gives the key of an operation up: from now on, the same name is a new operation. Call it when the response of `done` is safe
   * with you, or when you have looked an unknown outcome up. With a function for `keys` it does nothing.
   */
  forget(operation: string): Promise<void>
}

/**
 * `fetch` with an `Idempotency-Key`: one key for each operation, kept from before the first try until the outcome is settled,
 * and retries that obey `Retry-After` and `X-Should-Retry`. No try ever uses another key.
 *
 * @example
 * const client = createClient({ keys: localStorage })
 * const end = await client.send('pay order-1001', '/payouts', { body, headers: { 'Content-Type': 'application/json' } })
 * if (end.outcome === 'done') {
 *   show(await end.response.json())
 *   await client.forget('pay order-1001')
 * }
 * @throws TypeError, RangeError for options that cannot be meant.
 */
export function createClient(options: ClientOptions): Client {
  const rules = rulesOf(options)
  /** The calls that have not ended, by their operation: the first one's request, and how it ends. */
  const underWay = new Map<string, { readonly request: readonly unknown[]; readonly end: Promise<Outcome> }>()

  return {
    async send(operation, url, init = {}) {
      const request = [String(url), init.method, init.body]
      let call = underWay.get(operation)
      if (call?.request.some((part, i) => part !== request[i])) {
        throw new TypeError('Another request of this operation is under way.')
      }
      if (!call) {
        call = { request, end: carryOut(rules, operation, url, init).finally(() => underWay.delete(operation)) }
        underWay.set(operation, call)
      }
      const outcome = await call.end
      // A body can be read once, and each caller reads it.
      return { ...outcome, response: outcome.response?.clone() } as Outcome
    },

    forget: (operation) => forgetKey(rules.keys, operation),
  }
}
