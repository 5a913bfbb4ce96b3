import { brokenBody, changedBody, fieldToChange, fieldWords } from './changed-body.js'
import { toldOf } from './sentences.js'

/**
 * @typedef {import('./exchange.js').Exchange} Exchange
 * @typedef {import('./changed-body.js').Body} Body
 */

/**
 * What is different about one request.
 *
 * @typedef {object} Change
 * @property {Body} [body]
 * @property {number} [delayMs]
 * @property {boolean} [crash]
 * @property {number} [leaveAfterMs]
 * @property {string} [leaving]
 */

/**
 * One client of the merchant: a lane of the timeline.
 *
 * @typedef {object} Client
 * @property {(change?: Change) => Promise<Exchange>} send
 * @property {(change?: Change, onFirst?: (first: Exchange) => void) => Promise<Exchange>} sendPolitely and again, when the service says so
 * @property {(ms: number) => Promise<void>} wait
 */

/**
 * @typedef {object} Stage
 * @property {Body} body what the page's form holds
 * @property {number} delayMs how long the operation takes
 * @property {import('./session.js').Handler} handler
 * @property {boolean} isUsed something was sent under the key
 * @property {Exchange | undefined} success the first one under the key
 * @property {(label: string) => Client} client
 * @property {() => Promise<number>} runs
 */

/**
 * @typedef {object} Story
 * @property {string} id
 * @property {string} symbol
 * @property {(body: Body) => string} title
 * @property {string} line
 * @property {string} meanwhile what to watch while it plays
 * @property {'fresh' | 'same'} key
 * @property {string} [operation] absent: the one that the form holds
 * @property {import('./session.js').Handler} [handler] the same
 * @property {(stage: Stage) => Promise<string>} play resolves with what happened, and why
 */

const HANG_UP_AFTER_MS = 500
const GIVE_UP_AFTER_MS = 1_500
/** Longer than ten requests need to arrive, and less than `Retry-After` says. */
const RACE_MS = 800
const SLOW_MS = 1_200

/** @type {readonly Story[]} */
export const stories = [
  {
    id: 'send',
    symbol: 'send',
    title: () => 'Send',
    line: 'The first request with a key.',
    meanwhile: 'The request is in progress. Until it ends, its key is in flight.',
    key: 'fresh',
    async play({ client }) {
      return toldOf(await client('Client').send())
    },
  },
  {
    id: 'again',
    symbol: 'again',
    title: () => 'Send again',
    line: 'The answer was lost on its way.',
    meanwhile: 'The same request, with the same key.',
    key: 'same',
    async play(stage) {
      const client = stage.client('Client')
      const first = stage.isUsed ? stage.success : await client.send()
      const second = await client.send()
      const isSame = second.decision === 'replayed' && first?.answer === second.answer
      if (!isSame) return toldOf(second)
      return "The second request got the first one's answer, byte for byte; nothing ran again."
    },
  },
  {
    id: 'change',
    symbol: 'change',
    title: (body) => `Change the ${fieldWords(fieldToChange(body))}`,
    line: 'The same key, another request.',
    meanwhile: 'The same key, with something else in the body.',
    key: 'same',
    async play(stage) {
      const client = stage.client('Client')
      if (!stage.isUsed) await client.send()
      const changed = await client.send({ body: changedBody(stage.body) })
      if (changed.decision !== 'mismatched') return toldOf(changed)
      const field = fieldWords(fieldToChange(stage.body))
      return `The key belongs to the first request. With another ${field} the request was refused with 409, and nothing ran. A retry would not help; a new key would.`
    },
  },
  {
    id: 'ten',
    symbol: 'ten',
    title: () => 'Ten at once',
    line: 'A double click, or a retry storm.',
    meanwhile: 'Ten clients send the same request with one key, all at once.',
    key: 'fresh',
    async play(stage) {
      const delayMs = Math.max(stage.delayMs, RACE_MS)
      const clients = Array.from({ length: 10 }, (_, i) => stage.client(`Client ${i + 1}`))
      /** @type {Exchange[]} */
      const firsts = []
      const lasts = await Promise.all(
        clients.map((client) => client.sendPolitely({ delayMs }, (first) => void firsts.push(first))),
      )
      const refused = firsts.filter(({ decision }) => decision === 'in_flight').length
      const replayed = lasts.filter(({ decision }) => decision === 'replayed').length
      const runs = await stage.runs()
      if (runs !== 1 || replayed < 9) return toldOf(/** @type {Exchange} */ (lasts.at(-1)))
      if (refused === 0 && replayed === 9) return 'Ten requests, one run. The other nine got its answer.'
      if (replayed === 10) return 'The key already had its answer: all ten got it, and nothing ran again.'
      if (refused === 9)
        return "Ten requests, one run. Nine got 409 in flight, waited as Retry-After says, and got the first one's answer."
      return "Ten requests, one run. Those that arrived while it ran got 409 in flight, and waited; in the end all others got the first one's answer."
    },
  },
  {
    id: 'hang-up',
    symbol: 'leave',
    title: () => 'Send and hang up',
    line: 'The client leaves, the service continues.',
    meanwhile: 'The client hangs up after half a second. The operation continues.',
    key: 'fresh',
    async play(stage) {
      const delayMs = Math.max(stage.delayMs, SLOW_MS)
      const client = stage.client('Client')
      const left = await client.send({ delayMs, leaveAfterMs: HANG_UP_AFTER_MS, leaving: 'hung up' })
      await client.wait(delayMs - HANG_UP_AFTER_MS + 300)
      const next = await client.sendPolitely()
      if (left.decision !== 'no_answer' || next.decision !== 'replayed') return toldOf(next)
      return 'The client hung up, but the operation continued and its answer was stored. The next request got it; nothing ran again.'
    },
  },
  {
    id: 'fail',
    symbol: 'correct',
    title: () => 'Fail, then correct',
    line: 'A mistake must not use up the key.',
    meanwhile: 'First a request with a mistake, then the corrected one, with the same key.',
    key: 'fresh',
    async play(stage) {
      const client = stage.client('Client')
      const wrong = await client.send({ body: brokenBody(stage.body) })
      await client.wait(400)
      const corrected = await client.send()
      if (wrong.decision !== 'failed' || corrected.decision !== 'run') return toldOf(corrected)
      return `The first request failed with ${wrong.status}: it had no effect, so its key was free again. The corrected one ran with the same key.`
    },
  },
  {
    id: 'crash',
    symbol: 'crash',
    title: () => 'Crash the owner',
    line: 'It dies between effect and answer.',
    meanwhile: 'The owner has its effect, and dies. As long as it has a lease, no other attempt may run.',
    key: 'fresh',
    async play(stage) {
      const last = await crashAndAskAgain(stage)
      return toldOfCrash(last, await stage.runs(), stage.handler)
    },
  },
  {
    id: 'steps',
    symbol: 'steps',
    title: () => 'Crash between steps',
    line: 'An order, charged but not shipped.',
    meanwhile: 'The owner charges, records that step, and dies. As long as it has a lease, no other attempt may run.',
    key: 'fresh',
    operation: '/api/service/order/create',
    handler: 'steps',
    async play(stage) {
      const last = await crashAndAskAgain(stage)
      if (last.decision !== 'resumed' || (await stage.runs()) !== 1) return toldOf(last)
      return 'The owner charged, and died before it shipped. After its lease had lapsed, attempt 2 resumed the step “charge” from its record, then shipped and wrote the mail. Three steps, one charge.'
    },
  },
]

/**
 * The owner has its effect and dies; the client gives up, and asks until it gets an answer.
 *
 * @param {Stage} stage
 */
async function crashAndAskAgain(stage) {
  const client = stage.client('Client')
  await client.send({ crash: true, delayMs: 0, leaveAfterMs: GIVE_UP_AFTER_MS, leaving: 'gave up' })
  return client.sendPolitely()
}

/**
 * What is the library's work, and what the handler's.
 *
 * @param {Exchange} last
 * @param {number} runs
 * @param {import('./session.js').Handler} handler
 */
function toldOfCrash(last, runs, handler) {
  if (handler === 'in-transaction' && last.decision === 'run' && runs === 1)
    return 'The owner died before its COMMIT, so its effect was rolled back. It had claimed nothing: the next request ran at once, and no lease had to lapse. There is one effect.'
  const told =
    'The owner died after its effect, before its answer. After its lease had lapsed, the library told attempt 2;'
  if (last.decision === 'found' && runs === 1)
    return `${told} the handler checked its books, under a derived key, and responded from there. It ran once.`
  if (last.decision === 'run' && runs === 1)
    return `${told} the first effect was rolled back with its transaction, so the handler ran again and committed effect and record together. There is one effect.`
  if (last.decision === 'run' && runs > 1)
    return `${told} the naive handler did not check, and ran again. Checking its books under a deriveKey prevents that, or one transaction with the record.`
  if (last.decision === 'failed' && runs === 1)
    return `${told} the naive handler did not check, and refused what it had done itself (${last.status} ${last.code}): the client believes that nothing has happened.`
  return toldOf(last)
}
