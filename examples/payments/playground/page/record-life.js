import { element, existing } from './element.js'

/**
 * @typedef {import('./feed.js').FeedRecord} FeedRecord
 * @typedef {import('./feed.js').FeedEvent} FeedEvent
 * @typedef {'new' | 'in-flight' | 'completed' | 'failed' | 'uncertain'} LifeState
 */

const MOST_EVENTS = 40
const COUNTS_DOWN_EVERY_MS = 100
const REDUCED_MOTION_MS = 1_000

/** @type {Readonly<Record<string, string>>} */
const EDGES = {
  'new in-flight': 'claim',
  'in-flight completed': 'complete',
  'in-flight failed': 'fail',
  'failed in-flight': 'retry',
  'in-flight uncertain': 'lapse',
  'uncertain in-flight': 'takeover',
}

const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)')

/** Shows the record of the key as the feed tells it: its state, its attempt, its lease. */
export function createRecordLife() {
  const diagram = existing('diagram', SVGSVGElement)
  const diagramTitle = existing('diagram-title', SVGTitleElement)
  const state = existing('record-state', HTMLElement)
  const attempt = existing('record-attempt', HTMLElement)
  const lease = existing('record-lease', HTMLElement)
  const leaseLeft = existing('lease-left', HTMLElement)
  const words = existing('record-words', HTMLElement)
  const events = existing('events', HTMLElement)
  existing('events-scroll', HTMLElement).tabIndex = 0 // It scrolls, so it must be focusable.

  /** @type {LifeState | 'not known'} */
  let shown = 'new'
  /** Why the state of the record is unknown; '' if it is known. */
  let unknown = ''
  /** @type {FeedRecord | null} */
  let record = null
  let leaseEndsAt = 0
  let wholeLeaseMs = 0
  let isCounting = false
  /** @type {number | undefined} */
  let firstEventAt

  /** @param {FeedRecord | null} given */
  function take(given) {
    const isSameAttempt = given?.attempt === record?.attempt
    record = given
    unknown = ''
    const leftMs = given?.leaseRemainingMs ?? 0
    leaseEndsAt = performance.now() + leftMs
    wholeLeaseMs = isSameAttempt ? Math.max(wholeLeaseMs, leftMs) : leftMs
    draw()
  }

  /** @param {string} reason */
  function lose(reason) {
    unknown = reason
    draw()
  }

  function draw() {
    if (unknown === '') drawRecord()
    else drawUnknown()
  }

  function drawUnknown() {
    light('not known')
    state.textContent = 'not known'
    attempt.textContent = '–'
    lease.textContent = '–'
    leaseLeft.style.setProperty('width', '0')
    words.textContent = unknown
  }

  function drawRecord() {
    const leftMs = leaseEndsAt - performance.now()
    const current = stateOf(record, leftMs)
    light(current)
    state.textContent = current
    attempt.textContent = record === null ? '–' : `${record.attempt ?? '–'}`
    words.textContent = wordsOf(current, record)
    const isInFlight = record?.state === 'in-flight'
    lease.textContent = isInFlight ? (leftMs > 0 ? `${(leftMs / 1_000).toFixed(1)} s` : 'lapsed') : '–'
    const share = isInFlight && wholeLeaseMs > 0 ? Math.max(0, leftMs / wholeLeaseMs) : 0
    leaseLeft.style.setProperty('width', `${share * 100}%`)
    if (!isInFlight || leftMs <= 0 || isCounting) return
    isCounting = true
    setTimeout(
      () => {
        isCounting = false
        draw()
      },
      reducedMotion.matches ? REDUCED_MOTION_MS : COUNTS_DOWN_EVERY_MS,
    )
  }

  /** @param {LifeState | 'not known'} current */
  function light(current) {
    for (const node of diagram.querySelectorAll('.node')) {
      node.classList.toggle('lit', node.getAttribute('data-state') === current)
    }
    diagramTitle.textContent = `The record is ${current}. States: new, in-flight, completed, failed, uncertain.`
    if (current === shown) return
    const edge = EDGES[`${shown} ${current}`]
    for (const path of diagram.querySelectorAll('[data-edge]')) {
      path.classList.toggle('lit', path.getAttribute('data-edge') === edge)
    }
    shown = current
  }

  draw()
  return {
    lose,

    /** @param {import('./feed.js').Message} message */
    show({ event, record: given }) {
      if (event !== null) {
        firstEventAt ??= performance.now()
        events.prepend(eventLine(event, performance.now() - firstEventAt))
      }
      if (events.children.length > MOST_EVENTS) events.lastElementChild?.remove()
      if (given !== undefined) take(given)
      else lose('The store does not reply at the moment.')
    },
    clear() {
      events.replaceChildren()
      firstEventAt = undefined
      take(null)
      for (const path of diagram.querySelectorAll('[data-edge]')) path.classList.remove('lit')
    },
  }
}

/**
 * @param {FeedRecord | null} record
 * @param {number} leftMs
 * @returns {LifeState}
 */
function stateOf(record, leftMs) {
  if (record === null) return 'new'
  if (record.state === 'in-flight') return leftMs > 0 ? 'in-flight' : 'uncertain'
  return record.state === 'failed' && record.uncertain ? 'uncertain' : record.state
}

/**
 * @param {LifeState} state
 * @param {FeedRecord | null} record
 */
function wordsOf(state, record) {
  switch (state) {
    case 'new':
      return 'Nobody has used this key. The next request runs.'
    case 'in-flight':
      return record?.uncertain
        ? 'An earlier attempt may have had its effect. The attempt that is running knows that.'
        : 'Its owner is running. The same request now gets 409 and is told when to retry.'
    case 'completed':
      return 'The answer is stored. The same request gets it, and nothing runs.'
    case 'failed':
      return 'The attempt had no effect. The next request runs, corrected or not.'
    case 'uncertain':
      return 'Its owner died or failed, perhaps after the effect. The next attempt runs and is told.'
  }
}

/**
 * @param {FeedEvent} event
 * @param {number} afterMs since the first one that was heard
 */
function eventLine({ type, attempt, previousOutcome, status, uncertain, label }, afterMs) {
  const details = [
    type === 'claimed' && `attempt ${attempt}`,
    previousOutcome !== undefined && previousOutcome !== 'none' && `after ${previousOutcome}`,
    status !== undefined && `${status}`,
    uncertain === true && 'uncertain',
    label,
  ].filter((detail) => detail !== false && detail !== undefined)
  return element(
    'li',
    {},
    element('span', { class: 'event-time' }, `${(afterMs / 1_000).toFixed(1)} s`),
    element('strong', {}, type.replaceAll('_', ' ')),
    element('span', { class: 'event-details' }, details.join(' · ')),
  )
}
