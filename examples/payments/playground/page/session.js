import { carryOut } from './exchange.js'
import { openFeed } from './feed.js'
import { asHeaderValue, operationNameOf } from './keys.js'
import { authorization, countRuns } from './service.js'

/**
 * All that is sent under one key of one merchant.
 *
 * @typedef {object} Session
 * @property {import('./service.js').Merchant} merchant
 * @property {string} key
 * @property {readonly import('./exchange.js').Exchange[]} exchanges
 * @property {Promise<void>} ready settles when the feed is open, or late
 * @property {(request: Sent) => { exchange: import('./exchange.js').Exchange, ended: Promise<void> }} send
 * @property {() => Promise<number>} refreshRuns
 * @property {() => void} close
 */

/**
 * The operation's own, or another one: it does not look in its books, it is one transaction without a claim, or it is in steps.
 *
 * @typedef {'own' | 'naive' | 'in-transaction' | 'steps'} Handler
 */

/**
 * @typedef {object} Sent
 * @property {string} story
 * @property {string} path
 * @property {unknown} body
 * @property {number} delayMs
 * @property {Handler} handler
 * @property {boolean} [crash]
 * @property {number} [leaveAfterMs]
 * @property {string} [leaving] what the client does then
 */

/**
 * @typedef {object} SessionListener
 * @property {(message: import('./feed.js').Message) => void} onMessage
 * @property {(state: import('./feed.js').FeedState) => void} onFeedState
 * @property {(runs: number, requests: number, underWay: number) => void} onCount how often the operation ran, for how many
 *   requests, and how many of these have no answer yet
 */

const FEED_PATIENCE_MS = 800
const LOOK_EVERY_MS = 300

/**
 * @param {import('./service.js').Merchant} merchant
 * @param {string} key
 * @param {SessionListener} listener
 * @returns {Session}
 */
export function openSession(merchant, key, { onMessage, onFeedState, onCount }) {
  /** @type {import('./exchange.js').Exchange[]} */
  const exchanges = []
  const operationName = operationNameOf(key)
  let runs = 0
  let underWay = 0
  let closed = false
  /** @type {() => void} */
  let beReady = () => {}
  /** @type {Promise<void>} */
  const ready = new Promise((resolve) => {
    beReady = resolve
    setTimeout(resolve, FEED_PATIENCE_MS)
  })

  const feed = openFeed(merchant, key, {
    onState: onFeedState,
    onMessage(message) {
      beReady()
      if (message.event !== null) void refreshRuns()
      onMessage(message)
    },
  })

  function tellCount() {
    onCount(runs, exchanges.length, underWay)
  }

  async function refreshRuns() {
    runs = Math.max(runs, await countRuns(merchant, operationName).catch(() => 0))
    if (!closed) tellCount()
    return runs
  }

  /** An effect without an answer makes no event. */
  function lookWhileUnderWay() {
    if (underWay === 0 || closed) return
    void refreshRuns()
    setTimeout(lookWhileUnderWay, LOOK_EVERY_MS)
  }

  /** @param {Sent} sent */
  function send({ story, path, body, delayMs, handler, crash = false, leaveAfterMs, leaving = '' }) {
    /** @type {[name: string, value: string][]} */
    const headers = [
      ['Authorization', authorization(merchant)],
      ['Content-Type', 'application/json'],
      ['Idempotency-Key', key],
      ['x-demo-operation', operationName],
    ]
    if (delayMs > 0) headers.push(['x-demo-delay-ms', `${delayMs}`])
    if (handler !== 'own') headers.push(['x-demo-handler', handler])
    if (crash) headers.push(['x-demo-crash', 'true'])
    /** @type {import('./exchange.js').Exchange} */
    const exchange = {
      number: exchanges.length + 1,
      story,
      url: new URL(path, location.href).href,
      headers,
      body: JSON.stringify(body),
      startedAt: performance.now(),
      endedAt: null,
      decision: null,
      outcome: '',
      status: 0,
      answerHeaders: [],
      answer: '',
      code: '',
      retryAfterMs: null,
    }
    exchanges.push(exchange)
    const leave = leaveAfterMs === undefined ? new AbortController().signal : AbortSignal.timeout(leaveAfterMs)
    const sentHeaders = headers.map(([name, value]) => /** @type {const} */ ([name, asHeaderValue(value)]))
    underWay++
    if (underWay === 1) lookWhileUnderWay()
    const ended = carryOut(exchange, { sentHeaders: Object.fromEntries(sentHeaders), leave, leaving }).then(() => {
      underWay--
      tellCount()
      void refreshRuns()
    })
    tellCount()
    return { exchange, ended }
  }

  void refreshRuns()
  return {
    merchant,
    key,
    exchanges,
    ready,
    send,
    refreshRuns,
    close() {
      closed = true
      feed.close()
    },
  }
}
