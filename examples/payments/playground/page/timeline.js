import { decisions } from './decisions.js'
import { element, icon } from './element.js'

/**
 * @typedef {import('./exchange.js').Exchange} Exchange
 * @typedef {{ add(exchange: Exchange): { update(): void }, wait(ms: number): void }} Lane
 * @typedef {{ lane(label: string): Lane, tell(sentence: string): void }} Scene
 */

/** What the axis shows at least, in ms; it takes the next step when a request needs it. */
const STEPS_MS = [2_000, 4_000, 6_000, 10_000, 20_000, 60_000, 600_000]
const REDUCED_MOTION_MS = 500

const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)')

/**
 * Draws each request as a bar along real time. A story is a scene with its own beginning; all scenes have one scale.
 *
 * @param {HTMLElement} place
 * @param {(exchange: Exchange) => void} onChoose
 */
export function createTimeline(place, onChoose) {
  const nothingYet = place.firstElementChild
  /** @type {Set<() => void>} */
  let drawings = new Set()
  let domainMs = STEPS_MS[0] ?? 0
  let isTicking = false
  let underWay = 0

  /**
   * @param {number} ms
   * @param {Set<() => void>} among drawings that were cleared need no room
   */
  function makeRoomFor(ms, among) {
    if (ms <= domainMs || among !== drawings) return
    domainMs = STEPS_MS.find((step) => step >= ms) ?? ms
    for (const draw of drawings) draw()
  }

  function tick() {
    if (underWay === 0) {
      isTicking = false
      return
    }
    for (const draw of drawings) draw()
    if (reducedMotion.matches) setTimeout(tick, REDUCED_MOTION_MS)
    else requestAnimationFrame(tick)
  }

  /**
   * @param {HTMLElement} bar
   * @param {number} fromMs
   * @param {number} toMs
   */
  function stretch(bar, fromMs, toMs) {
    bar.style.setProperty('left', `${(fromMs / domainMs) * 100}%`)
    bar.style.setProperty('width', `${((toMs - fromMs) / domainMs) * 100}%`)
  }

  /**
   * @param {string} title
   * @returns {Scene}
   */
  function scene(title) {
    nothingYet?.remove()
    const origin = performance.now()
    const ours = drawings
    const lanes = element('ol', { class: 'lanes', role: 'list' })
    const axis = element('div', { class: 'axis', 'aria-hidden': 'true' })
    const words = element('p', { class: 'scene-words' })
    place.append(element('section', { class: 'scene' }, element('h3', {}, title), lanes, axis, words))
    let drawnMs = 0

    function drawAxis() {
      if (drawnMs === domainMs) return
      drawnMs = domainMs
      const ticks = [0, 1, 2, 3, 4].map((i) => {
        const mark = element('span', {}, `${Number(((domainMs * i) / 4_000).toFixed(1))} s`)
        mark.style.setProperty('left', `${i * 25}%`)
        return mark
      })
      axis.replaceChildren(...ticks)
    }
    ours.add(drawAxis)
    drawAxis()

    /**
     * @param {string} label
     * @returns {Lane}
     */
    function lane(label) {
      const track = element('div', { class: 'track', 'aria-hidden': 'true' })
      const chips = element('div', { class: 'chips' })
      lanes.append(element('li', { class: 'lane' }, element('span', { class: 'lane-label' }, label), track, chips))
      return {
        add: (exchange) => addExchange(exchange, origin, ours, track, chips),
        wait(ms) {
          const fromMs = performance.now() - origin
          const line = element('div', { class: 'waiting' })
          const draw = () => stretch(line, fromMs, fromMs + ms)
          ours.add(draw)
          track.append(line)
          draw()
          makeRoomFor(fromMs + ms, ours)
        },
      }
    }

    return {
      lane,
      tell(sentence) {
        words.textContent = sentence
      },
    }
  }

  /**
   * @param {Exchange} exchange
   * @param {number} origin
   * @param {Set<() => void>} among
   * @param {HTMLElement} track
   * @param {HTMLElement} chips
   */
  function addExchange(exchange, origin, among, track, chips) {
    const bar = element('div', { class: 'bar', 'data-decision': 'running' })
    const chip = element('button', { class: 'chip', type: 'button', 'data-decision': 'running' })
    for (const target of [bar, chip]) target.addEventListener('click', () => onChoose(exchange))
    track.append(bar)
    chips.append(chip)
    let isOver = false
    underWay++

    function draw() {
      const toMs = (exchange.endedAt ?? performance.now()) - origin
      stretch(bar, exchange.startedAt - origin, toMs)
      makeRoomFor(toMs, among)
    }

    function update() {
      const { decision, outcome, endedAt } = exchange
      bar.dataset.decision = decision ?? 'running'
      chip.dataset.decision = decision ?? 'running'
      const words = decision === null ? 'running' : chipWords(decision, outcome)
      chip.replaceChildren(icon(decision ?? 'running'), words)
      chip.setAttribute('aria-label', `Request ${exchange.number}: ${words}. Show details`)
      draw()
      if (endedAt === null || isOver) return
      isOver = true
      underWay--
    }

    among.add(draw)
    update()
    if (!isTicking) {
      isTicking = true
      tick()
    }
    return { update }
  }

  return {
    scene,
    clear() {
      drawings = new Set()
      domainMs = STEPS_MS[0] ?? 0
      place.replaceChildren(...(nothingYet === null ? [] : [nothingYet]))
    },
  }
}

/**
 * @param {import('./decisions.js').Decision} decision
 * @param {string} outcome
 */
function chipWords(decision, outcome) {
  return decision === 'no_answer' ? outcome : `${outcome} ${decisions[decision].word}`
}

/**
 * The key to colours and shapes.
 *
 * @param {HTMLElement} list
 */
export function showLegend(list) {
  const entries = Object.entries(decisions).map(([decision, { word, meaning }]) =>
    element(
      'li',
      {},
      element('span', { class: 'bar swatch', 'data-decision': decision, 'aria-hidden': 'true' }),
      element('span', { class: 'legend-word', 'data-decision': decision }, icon(decision), word),
      element('span', { class: 'legend-meaning' }, meaning),
    ),
  )
  list.replaceChildren(...entries)
}
