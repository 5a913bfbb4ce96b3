import { curlLine } from './curl.js'
import { decisions } from './decisions.js'
import { element, existing, icon } from './element.js'
import { toldOf } from './sentences.js'

/** @typedef {import('./exchange.js').Exchange} Exchange */

/** The response headers that say what happened and what to do. */
const TELLING = [
  'idempotent-replayed',
  'x-demo-outcome',
  'retry-after',
  'x-should-retry',
  'content-type',
  'deprecation',
  'link',
]

/** What a request was, what it was answered, and how to send it from a shell. */
export function createExchangeDialog() {
  const dialog = existing('exchange', HTMLDialogElement)
  const title = existing('exchange-title', HTMLElement)
  const content = existing('exchange-content', HTMLElement)
  existing('exchange-close', HTMLButtonElement).addEventListener('click', () => dialog.close())
  // A click beside it closes it too: on its backdrop, the target is the dialog itself.
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close()
  })

  return {
    /** @param {Exchange} exchange */
    show(exchange) {
      title.textContent = titleOf(exchange)
      content.replaceChildren(...contentOf(exchange))
      dialog.showModal()
      title.focus()
    },
  }
}

/** @param {Exchange} exchange */
function titleOf({ number, decision, outcome }) {
  if (decision === null) return `Request ${number} is in progress`
  return `Request ${number}: ${decision === 'no_answer' ? outcome : `${outcome} ${decisions[decision].word}`}`
}

/** @param {Exchange} exchange */
function contentOf(exchange) {
  const { decision, startedAt, endedAt, headers, body, url } = exchange
  // Without the header by which this page counts its runs: a shell does not need it.
  const line = curlLine({ url, headers: headers.filter(([name]) => name !== 'x-demo-operation'), body })
  const took = endedAt === null ? 'It has no answer yet.' : `It took ${Math.round(endedAt - startedAt)} ms.`
  return [
    element(
      'p',
      { class: 'exchange-told', 'data-decision': decision ?? 'running' },
      icon(decision ?? 'running'),
      element('span', {}, decision === null ? took : `${toldOf(exchange)} ${took}`),
    ),
    element('h3', {}, 'Request'),
    code(`POST ${new URL(url).pathname}\n${lines(headers)}\n\n${pretty(body)}`, 'The request'),
    element('h3', {}, 'Answer'),
    ...answerOf(exchange),
    element('div', { class: 'label-line' }, element('h3', {}, 'From a shell'), copyButton(line)),
    element('pre', { class: 'curl' }, element('code', {}, line)),
  ]
}

/** @param {Exchange} exchange */
function answerOf({ status, answerHeaders, answer }) {
  if (status === 0) return [element('p', { class: 'quiet-words' }, 'There is none: the client got no response.')]
  const telling = TELLING.flatMap((name) => answerHeaders.filter(([given]) => given === name))
  return [code(`HTTP ${status}\n${lines(telling)}\n\n${pretty(answer)}`, 'The answer')]
}

/**
 * @param {string} text
 * @param {string} label
 */
function code(text, label) {
  // It scrolls horizontally, so it must be focusable.
  return element('pre', { tabindex: '0', role: 'region', 'aria-label': label }, element('code', {}, text))
}

/** @param {string} line */
function copyButton(line) {
  const words = element('span', {}, 'Copy')
  const button = element('button', { class: 'quiet', type: 'button' }, icon('copy'), words)
  const told = element('span', { class: 'unseen', role: 'status' })
  button.addEventListener('click', async () => {
    const isCopied = await copy(line)
    words.textContent = isCopied ? 'Copied' : 'Select it, and copy'
    told.textContent = isCopied ? 'The curl line is copied.' : 'It could not be copied: select it.'
  })
  return element('span', {}, button, told)
}

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false // The browser forbids it, or the page was not served over TLS or from this machine.
  }
}

/** @param {readonly (readonly [name: string, value: string])[]} headers */
function lines(headers) {
  return headers.map(([name, value]) => `${name}: ${value}`).join('\n')
}

/** @param {string} text */
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
