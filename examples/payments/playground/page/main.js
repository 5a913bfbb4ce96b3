import { element, existing, icon } from './element.js'
import { createExchangeDialog } from './exchange-dialog.js'
import { createRecordLife } from './record-life.js'
import { createRequestForm } from './request-form.js'
import { counted } from './sentences.js'
import { openSession } from './session.js'
import { stories } from './stories.js'
import { createTimeline, showLegend } from './timeline.js'

/**
 * @typedef {import('./session.js').Session} Session
 * @typedef {import('./stories.js').Story} Story
 * @typedef {import('./stories.js').Client} Client
 * @typedef {import('./request-form.js').Request} Request
 */

const MOST_TRIES = 12
/** Clients that were refused together do not come back together. */
const JITTER_MS = 250
/** @type {Readonly<Record<import('./feed.js').FeedState, string>>} */
const FEED_WORDS = { live: 'Live', away: 'Reconnecting', full: 'Too many viewers' }

const results = existing('results', HTMLElement)
const sentence = existing('sentence', HTMLElement)
const timelineKey = existing('timeline-key', HTMLElement)
const dialog = createExchangeDialog()
const timeline = createTimeline(existing('timeline', HTMLElement), dialog.show)
const life = createRecordLife()
const form = createRequestForm({ onChange: chooseKey, onEdit: nameStories })

/** @type {Map<string, { button: HTMLButtonElement, title: HTMLElement }>} */
const storyButtons = new Map()
/** @type {Session} */
let session = open()
let playing = 0

showLegend(existing('legend', HTMLElement))
showStories()
if (matchMedia('(max-width: 60rem)').matches) existing('request', HTMLDetailsElement).open = false
form.load().then(nameStories, tellUnreachable)

// --- the key

/** @returns {Session} */
function open() {
  const opened = openSession(form.merchant(), form.key(), {
    onMessage: (message) => session === opened && life.show(message),
    onFeedState: (state) => session === opened && showFeedState(state),
    onCount: (runs, requests, underWay) => session === opened && showCount(runs, requests, underWay),
  })
  timelineKey.textContent = `${form.merchant().name} · ${form.key()}`
  return opened
}

/** Another choice is another operation: a key that was used is not taken for it. */
function chooseKey() {
  nameStories()
  if (form.isFresh() && session.exchanges.length > 0) form.renewKey()
  if (takeUpKey()) sentence.textContent = 'This page has not sent anything with this key yet.'
}

/** What is shown belongs to one key of one merchant. `true`: it is another one now. */
function takeUpKey() {
  if (session.merchant === form.merchant() && session.key === form.key()) return false
  session.close()
  timeline.clear()
  life.clear()
  showCount(0, 0, 0)
  session = open()
  return true
}

// --- the stories

function showStories() {
  const items = stories.map((story) => {
    const title = element('span', { class: 'story-title' })
    const line = element('span', { class: 'story-line' }, story.line)
    const button = element(
      'button',
      { class: 'story', type: 'button', 'data-story': story.id },
      icon(story.symbol),
      title,
      line,
    )
    button.addEventListener('click', () => void play(story))
    storyButtons.set(story.id, { button, title })
    return element('li', {}, button)
  })
  existing('stories', HTMLElement).replaceChildren(...items)
  nameStories()
}

function nameStories() {
  for (const { id, title } of stories) {
    const shown = storyButtons.get(id)
    if (shown !== undefined) shown.title.textContent = title(form.body())
  }
}

/** While a story plays, what repeats it may be sent: a race by hand. Others wait. */
function showPlaying() {
  for (const { id, key } of stories) {
    const isWaiting = playing > 0 && key === 'fresh'
    storyButtons.get(id)?.button.setAttribute('aria-disabled', `${isWaiting}`)
  }
}

/** @param {Story} story */
async function play(story) {
  if (playing > 0 && story.key === 'fresh') return
  if (story.operation !== undefined) {
    form.chooseOperation(story.operation)
    nameStories()
  }
  if (form.read() === null) return
  playing++
  showPlaying()
  storyButtons.get(story.id)?.button.setAttribute('data-playing', '')
  try {
    if (story.key === 'fresh' && form.isFresh() && session.exchanges.length > 0) await form.renew()
    takeUpKey()
    const request = form.read()
    if (request !== null) await perform(story, { ...request, handler: story.handler ?? request.handler }, session)
  } catch {
    tellUnreachable()
  } finally {
    playing--
    showPlaying()
    storyButtons.get(story.id)?.button.removeAttribute('data-playing')
  }
}

/**
 * @param {Story} story
 * @param {Request} request
 * @param {Session} current
 */
async function perform(story, request, current) {
  const title = story.title(request.body)
  await current.ready
  if (session !== current) return // Another key was chosen meanwhile.
  sentence.textContent = story.meanwhile
  const scene = timeline.scene(title)
  const played = story.play({
    body: request.body,
    delayMs: request.delayMs,
    handler: request.handler,
    isUsed: current.exchanges.length > 0,
    success: current.exchanges.find(({ status }) => status >= 200 && status < 400),
    client: (label) => clientOf(label, scene, story, request, current),
    runs: current.refreshRuns,
  })
  bringIntoView() // Its lanes are there.
  const told = await played
  scene.tell(told)
  if (session === current) sentence.textContent = told
}

/**
 * @param {string} label
 * @param {import('./timeline.js').Scene} scene
 * @param {Story} story
 * @param {Request} request
 * @param {Session} current
 * @returns {Client}
 */
function clientOf(label, scene, story, request, current) {
  const lane = scene.lane(label)

  /** @type {Client['send']} */
  async function send(change = {}) {
    const { exchange, ended } = current.send({ story: story.id, ...request, ...change })
    const bar = lane.add(exchange)
    await ended
    bar.update()
    return exchange
  }

  /** @param {number} ms */
  async function wait(ms) {
    lane.wait(ms)
    await new Promise((resolve) => setTimeout(resolve, ms))
  }

  return {
    send,
    wait,
    async sendPolitely(change, onFirst) {
      let exchange = await send(change)
      onFirst?.(exchange)
      for (let tries = 1; tries < MOST_TRIES && exchange.retryAfterMs !== null; tries++) {
        await wait(exchange.retryAfterMs + Math.random() * JITTER_MS)
        exchange = await send()
      }
      return exchange
    },
  }
}

// --- what is shown

/**
 * @param {number} runs
 * @param {number} requests
 * @param {number} underWay
 */
function showCount(runs, requests, underWay) {
  existing('runs', HTMLElement).textContent = `${runs}`
  existing('runs-words', HTMLElement).textContent = `${runs === 1 ? 'time' : 'times'} the operation ran`
  existing('requests-words', HTMLElement).textContent =
    `for ${counted(requests, 'request')}${underWay === 0 ? '' : `, ${underWay} under way`}`
  existing('count', HTMLElement).dataset.runs = runs > 1 ? 'many' : `${runs}`
}

/** @param {import('./feed.js').FeedState} state */
function showFeedState(state) {
  existing('feed', HTMLElement).dataset.state = state
  existing('feed-words', HTMLElement).textContent = FEED_WORDS[state]
  if (state !== 'live') life.lose('The record cannot be watched at the moment. The stories still work.')
}

function tellUnreachable() {
  sentence.textContent = 'The service cannot be reached. Is it still running? Start it, then reload this page.'
}

/** On a phone the results are below what was pressed; elsewhere the bars may be. */
function bringIntoView() {
  const behavior = matchMedia('(prefers-reduced-motion: reduce)').matches ? 'instant' : 'smooth'
  const { top } = results.getBoundingClientRect()
  if (top > innerHeight * 0.6) results.scrollIntoView({ block: 'start', behavior })
  else document.querySelector('.scene:last-child')?.scrollIntoView({ block: 'nearest', behavior })
}
