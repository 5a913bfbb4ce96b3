import { authorization } from './service.js'

/**
 * @typedef {{ readonly type: string, readonly attempt?: number, readonly previousOutcome?: string, readonly status?: number, readonly uncertain?: boolean, readonly label?: string }} FeedEvent
 * @typedef {{ readonly state: 'in-flight' | 'completed' | 'failed', readonly attempt: number | null, readonly uncertain?: boolean, readonly leaseRemainingMs?: number, readonly status?: number }} FeedRecord
 * @typedef {{ readonly event: FeedEvent | null, readonly record?: FeedRecord | null }} Message without a record: the store did not answer
 * @typedef {'live' | 'away' | 'full'} FeedState
 */

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 4_000

/**
 * Hears what happens to a key, until `close`. It is read by hand, since EventSource cannot say who asks, and opened again
 * whenever it breaks. A page that nobody sees has no feed: a browser opens few connections to one server.
 *
 * @param {import('./service.js').Merchant} merchant
 * @param {string} key
 * @param {{ onMessage(message: Message): void, onState(state: FeedState): void }} listener
 */
export function openFeed(merchant, key, { onMessage, onState }) {
  const closing = new AbortController()
  let pauseMs = FIRST_PAUSE_MS
  void listen()

  async function listen() {
    while (!closing.signal.aborted) {
      await untilShown()
      const end = await readOnce(AbortSignal.any([closing.signal, whenHidden()])).catch(
        () => /** @type {const} */ ('away'),
      )
      if (closing.signal.aborted) return
      onState(end)
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
    }
  }

  /**
   * @param {AbortSignal} signal
   * @returns {Promise<'away' | 'full'>} why it has ended
   */
  async function readOnce(signal) {
    const response = await fetch(`/demo/feed?key=${encodeURIComponent(key)}`, {
      headers: { Authorization: authorization(merchant) },
      signal,
      cache: 'no-store',
    })
    if (response.status === 503) return 'full'
    if (!response.ok || response.body === null) throw new Error(`The feed answered ${response.status}.`)
    pauseMs = FIRST_PAUSE_MS
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    let unread = ''
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      const messages = (unread + piece.value).split('\n\n')
      unread = messages.pop() ?? ''
      for (const message of messages) tell(message)
    }
    return 'away'
  }

  /** @param {string} message */
  function tell(message) {
    if (closing.signal.aborted || !message.startsWith('data: ')) return
    onState('live')
    onMessage(JSON.parse(message.slice('data: '.length)))
  }

  return { close: () => closing.abort() }
}

/** @returns {Promise<void>} */
async function untilShown() {
  while (document.hidden) {
    await new Promise((resolve) => document.addEventListener('visibilitychange', resolve, { once: true }))
  }
}

function whenHidden() {
  const hiding = new AbortController()
  document.addEventListener('visibilitychange', () => hiding.abort(), { once: true })
  return hiding.signal
}
