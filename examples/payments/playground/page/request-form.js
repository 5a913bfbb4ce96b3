import { element, existing } from './element.js'
import { freshKey, mistakeInKey } from './keys.js'
import { handlerKind, listOperations, merchants } from './service.js'

/**
 * @typedef {import('./service.js').Merchant} Merchant
 * @typedef {import('./service.js').Operation} Operation
 * @typedef {import('./changed-body.js').Body} Body
 * @typedef {import('./session.js').Handler} Handler
 * @typedef {{ readonly path: string, readonly body: Body, readonly delayMs: number, readonly handler: Handler }} Request
 */

/** Where the effect commits with the record; as long as what stands there for a handler that looks. */
const IN_TRANSACTION = {
  words: 'In one transaction',
  hint: 'The library lets one request run per key, and the effect commits together with the key’s record, or not at all. Naive: the effect commits separately, before its answer. No claim: that transaction takes the key too, so after a crash nobody waits for a lease.',
}
/** @type {Readonly<Record<string, string>>} */
const HANDLER_WORDS = { naive: ', naive handler', 'in-transaction': ', without a claim' }
const FIRST_CHOICE = '/api/service/payout/create'

/**
 * Which request the stories send. `onChange`: a choice was made that a key belongs to; `onEdit`: of the body.
 *
 * @param {{ onChange(): void, onEdit(): void }} listener
 */
export function createRequestForm({ onChange, onEdit }) {
  const operation = existing('operation', HTMLSelectElement)
  const merchant = existing('merchant', HTMLSelectElement)
  const takes = existing('takes', HTMLSelectElement)
  const key = existing('key', HTMLInputElement)
  const keyError = existing('key-error', HTMLElement)
  const body = existing('body', HTMLTextAreaElement)
  const bodyError = existing('body-error', HTMLElement)
  const summary = existing('request-summary', HTMLElement)
  const keyKinds = document.querySelectorAll('input[name=key-kind]')
  const handlers = document.querySelectorAll('input[name=handler]')

  /** @type {readonly Operation[]} */
  let operations = []
  let prefilled = ''

  const chosenMerchant = () => /** @type {Merchant} */ (merchants.find(({ id }) => id === merchant.value))
  const chosenOperation = () => operations.find(({ path }) => path === operation.value)
  const chosenHandler = () =>
    /** @type {Handler} */ (document.querySelector('input[name=handler]:checked')?.getAttribute('value') ?? 'own')
  const isFresh = () => document.querySelector('input[name=key-kind]:checked')?.getAttribute('value') === 'fresh'

  merchant.append(...merchants.map(({ id, name }) => element('option', { value: id }, name)))
  key.value = freshKey()

  operation.addEventListener('change', () => {
    prefill()
    onChange()
  })
  merchant.addEventListener('change', async () => {
    await load().catch(() => {})
    onChange()
  })
  for (const handler of handlers) {
    handler.addEventListener('change', () => {
      summarize()
      onChange()
    })
  }
  for (const kind of keyKinds) {
    kind.addEventListener('change', () => {
      key.readOnly = isFresh()
      if (isFresh()) key.value = freshKey()
      else key.select()
      showMistake(key, keyError, mistakeInKey(key.value))
      onChange()
    })
  }
  existing('new-key', HTMLButtonElement).addEventListener('click', () => {
    renewKey()
    onChange()
  })
  key.addEventListener('change', () => {
    key.value = key.value.trim()
    if (showMistake(key, keyError, mistakeInKey(key.value))) onChange()
  })
  existing('reset-body', HTMLButtonElement).addEventListener('click', () => {
    prefill()
    onEdit()
  })
  body.addEventListener('input', () => {
    showMistake(body, bodyError, mistakeInBody(body.value))
    onEdit()
  })
  // Enter in the key's field: nothing is sent, the key is taken.
  existing('form', HTMLFormElement).addEventListener('submit', (event) => event.preventDefault())

  /** What the operations work on may be used up: a new list brings new samples, and an edited body stays. */
  async function load() {
    const isEdited = body.value !== prefilled
    const asked = chosenMerchant()
    const [listed, handler] = await Promise.all([listOperations(asked), handlerKind(asked)])
    if (asked !== chosenMerchant()) return // Their samples are of the other one's books.
    operations = listed
    if (handler === 'transaction') {
      existing('handler-words', HTMLElement).textContent = IN_TRANSACTION.words
      existing('handler-hint', HTMLElement).textContent = IN_TRANSACTION.hint
      existing('no-claim', HTMLElement).hidden = false
    }
    const chosen = operation.value || FIRST_CHOICE
    operation.replaceChildren(...groups(operations))
    operation.value = chosen
    if (!isEdited) prefill()
  }

  function prefill() {
    prefilled = JSON.stringify(chosenOperation()?.sample ?? {}, null, 2)
    body.value = prefilled
    showMistake(body, bodyError, '')
    summarize()
  }

  function summarize() {
    const handler = HANDLER_WORDS[chosenHandler()] ?? ''
    summary.textContent = `${chosenOperation()?.title ?? ''}, ${chosenMerchant().name}${handler}`
  }

  function renewKey() {
    key.value = freshKey()
    showMistake(key, keyError, '')
  }

  return {
    load,
    isFresh,
    merchant: chosenMerchant,
    key: () => key.value,
    renewKey,

    /**
     * The operation of a story that is about one alone.
     *
     * @param {string} path
     */
    chooseOperation(path) {
      if (operation.value === path) return
      operation.value = path
      prefill()
    },

    /** A key and a body that were not used before. */
    async renew() {
      renewKey()
      if (Object.keys(chosenOperation()?.sample ?? {}).some((field) => field.endsWith('Id'))) await load()
    },

    /**
     * `null`: something is wrong, and was told beside its field.
     *
     * @returns {Request | null}
     */
    read() {
      const isKeyRight = showMistake(key, keyError, mistakeInKey(key.value))
      const isBodyRight = showMistake(body, bodyError, mistakeInBody(body.value))
      if (isKeyRight && isBodyRight) {
        const delayMs = Number(takes.value)
        return { path: operation.value, body: JSON.parse(body.value), delayMs, handler: chosenHandler() }
      }
      existing('request', HTMLDetailsElement).open = true
      if (isKeyRight) body.focus()
      else key.focus()
      return null
    },

    /** For the titles of the stories; a body that is wrong has no fields. */
    body() {
      return /** @type {Body} */ (mistakeInBody(body.value) === '' ? JSON.parse(body.value) : {})
    },
  }
}

/**
 * @param {readonly Operation[]} operations
 */
function groups(operations) {
  const byObject = Map.groupBy(operations, ({ path }) => objectOf(path))
  return [...byObject].map(([object, some]) =>
    element('optgroup', { label: object }, ...some.map(({ path, title }) => element('option', { value: path }, title))),
  )
}

/**
 * `/api/service/checkout/session/create`: checkout sessions.
 *
 * @param {string} path
 */
function objectOf(path) {
  const words = path.split('/').slice(3, -1).join(' ').replaceAll('-', ' ')
  if (words === 'fx') return 'FX conversions'
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}s`
}

/**
 * Kindly; '' if nothing is wrong.
 *
 * @param {string} text
 */
function mistakeInBody(text) {
  try {
    const value = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? '' : 'Enter one JSON object: { … }'
  } catch (error) {
    const [place = ''] = /line \d+ column \d+/.exec(`${error}`) ?? []
    return `This is not JSON yet${place === '' ? '' : `: check ${place}`}. Names and texts need double quotes, and there must be no comma before a } or ].`
  }
}

/**
 * @param {HTMLInputElement | HTMLTextAreaElement} field
 * @param {HTMLElement} place
 * @param {string} mistake
 */
function showMistake(field, place, mistake) {
  place.textContent = mistake
  field.setAttribute('aria-invalid', `${mistake !== ''}`)
  return mistake === ''
}
