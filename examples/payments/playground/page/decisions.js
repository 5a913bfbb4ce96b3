/** @typedef {'run' | 'replayed' | 'found' | 'resumed' | 'in_flight' | 'mismatched' | 'failed' | 'no_answer'} Decision */

/**
 * What the service decided about a request, in one word and in a few.
 *
 * @type {Readonly<Record<Decision, { readonly word: string, readonly meaning: string }>>}
 */
export const decisions = {
  run: { word: 'ran', meaning: 'the operation ran' },
  replayed: { word: 'replayed', meaning: 'the stored answer, nothing ran' },
  found: { word: 'found', meaning: 'by the handler, in its books' },
  resumed: { word: 'resumed', meaning: 'went on after the recorded steps' },
  in_flight: { word: 'in flight', meaning: 'refused: another one is running' },
  mismatched: { word: 'mismatched', meaning: 'refused: another request' },
  failed: { word: 'failed', meaning: 'no success: it may run again' },
  no_answer: { word: 'no answer', meaning: 'the client got no response' },
}

/**
 * @param {number} status
 * @param {Headers} headers
 * @param {string} text
 * @returns {Decision}
 */
export function decisionOf(status, headers, text) {
  if (status < 400) {
    if (headers.get('idempotent-replayed') === 'true') return 'replayed'
    // How the example says that its books held the outcome of an attempt that never answered, or its record a step.
    const outcome = headers.get('x-demo-outcome')
    return outcome === 'found' || outcome === 'resumed' ? outcome : 'run'
  }
  const code = codeOf(text)
  return code === 'in_flight' || code === 'mismatched' ? code : 'failed'
}

/**
 * The code of a problem (RFC 9457 with a `code`); '' where there is none.
 *
 * @param {string} text
 * @returns {string}
 */
export function codeOf(text) {
  try {
    const { code } = JSON.parse(text)
    return typeof code === 'string' ? code : ''
  } catch {
    return ''
  }
}
