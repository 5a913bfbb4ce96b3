import { codeOf, decisionOf } from './decisions.js'

/**
 * A request and what became of it. Times are `performance.now()`'s.
 *
 * @typedef {object} Exchange
 * @property {number} number
 * @property {string} story
 * @property {string} url
 * @property {readonly (readonly [name: string, value: string])[]} headers
 * @property {string} body
 * @property {number} startedAt
 * @property {number | null} endedAt `null`: it is under way
 * @property {import('./decisions.js').Decision | null} decision
 * @property {string} outcome in a few words
 * @property {number} status 0: there is none
 * @property {readonly (readonly [name: string, value: string])[]} answerHeaders
 * @property {string} answer
 * @property {string} code of the problem, or ''
 * @property {number | null} retryAfterMs `null`: the service does not advise to try again
 */

/**
 * Sends it, and notes what becomes of it. Never rejects.
 *
 * @param {Exchange} exchange
 * @param {{ readonly sentHeaders: HeadersInit, readonly leave: AbortSignal, readonly leaving: string }} sending
 */
export async function carryOut(exchange, { sentHeaders, leave, leaving }) {
  try {
    const { url, body } = exchange
    const response = await fetch(url, { method: 'POST', headers: sentHeaders, body, signal: leave, cache: 'no-store' })
    const answer = await response.text()
    exchange.status = response.status
    exchange.answerHeaders = [...response.headers]
    exchange.answer = answer
    exchange.code = codeOf(answer)
    exchange.retryAfterMs = retryAfterMsOf(response.headers)
    exchange.decision = decisionOf(response.status, response.headers, answer)
    exchange.outcome = `${response.status}`
  } catch {
    exchange.decision = 'no_answer'
    exchange.outcome = leave.aborted ? leaving : 'no connection'
  }
  exchange.endedAt = performance.now()
}

/** @param {Headers} headers */
function retryAfterMsOf(headers) {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  return headers.get('x-should-retry') === 'true' && Number.isFinite(seconds) ? seconds * 1_000 : null
}
