import { aboutCode } from '../errors.js'
import type { EngineEvent } from './events.js'

/** Warns once per process for each code and topic, so that logs are not flooded. */
export function warnOnce(code: string, message: string, topic = ''): void {
  const about = `${code} ${topic}`
  if (warned.has(about)) return
  warned.add(about)
  process.emitWarning(message, { type: 'OncePerKeyWarning', code })
}

/** Codes and topics are closed sets, so this does not grow with what clients send. */
const warned = new Set<string>()

/**
 * The default listener. It prints what an operator must know: a server that refuses payments, or runs them unprotected,
 * must not be silent. Messages contain no keys and no scopes, which do not belong in logs.
 */
export function warnUnheard(event: EngineEvent | { readonly type: 'rejected' | 'option_failed' }): void {
  if (event.type === 'store_failed') {
    const { name, message, code = name } = event.error
    const advice =
      code === 'store_full'
        ? ''
        : 'Check that its server is reachable, and that its client is connected (`await client.connect()` with node-redis). '
    warnOnce(
      'ONCE_PER_KEY_STORE_FAILED',
      `The store failed at \`${event.command}\` (${code}: ${message}). While it fails, requests with a key get 503, or run ` +
        `unprotected with \`storeFailure: 'runUnprotected'\`. ` +
        `${advice}${ONCE} ${aboutCode('store_unavailable')}`,
    )
  } else if (event.type === 'unprotected') {
    warnOnce(
      'ONCE_PER_KEY_UNPROTECTED',
      `A handler ran although its claim was not confirmed (storeFailure: 'runUnprotected'): a retry may run it again. ${ONCE}`,
    )
  } else if (event.type === 'transaction_not_committed') {
    warnOnce(
      'ONCE_PER_KEY_TRANSACTION_NOT_COMMITTED',
      'A record was completed by hand in a transaction that was not committed: the client got 503, and the outcome is unknown. ' +
        `Call completeIn as the last statement, and end the response after the COMMIT. ${ONCE}`,
    )
  } else if (event.type === 'failed' && event.because === 'no_transaction') {
    warnOnce(
      'ONCE_PER_KEY_TRANSACTION_MISSING',
      "A success was sent outside of a transaction, but with effects: 'in-transaction' all effects are inside one: the client got 500 " +
        'transaction_missing, and the outcome is unknown. Answer inside `store.transaction(context, work)`; where there is nothing to ' +
        `write, with \`{ allowEmpty: true }\`. ${ONCE}`,
    )
  } else if (event.type === 'evicted' && event.state === 'failed') {
    warnOnce(
      'ONCE_PER_KEY_UNKNOWN_OUTCOME_EVICTED',
      'The store has no room for all failures that may have had an effect, and drops the oldest: a retry of one runs as if ' +
        'it were new. Raise maxUncertainBytes, shorten unknownRetentionMs, or use Redis.',
    )
  } else if (event.type === 'eviction_policy') {
    warnOnce(
      'ONCE_PER_KEY_EVICTION_POLICY',
      `The store's eviction policy is ${event.policy ?? 'unknown'}. ${event.advice} ${ONCE}`,
    )
  } else if (event.type === 'connections_exhausted') {
    warnOnce(
      'ONCE_PER_KEY_CONNECTIONS_EXHAUSTED',
      `${event.waiting} of the store's commands are waiting for a connection. ${event.advice}`,
    )
  }
}

const ONCE = 'This is printed once; `onEvent` receives every case.'
