import { AssertionError } from 'node:assert'
import type { OnceAnswer } from './app-connection.js'

export interface ApplicationTrial {
  send(key: string, body?: 'other'): Promise<OnceAnswer>
  newKey(): string
  /** `null` where the application does not say. */
  effects(): Promise<number | null>
  readonly countsEffects: boolean
  readonly fail: ((when: 'before' | 'after') => void | Promise<void>) | undefined
  readonly hasOther: boolean
  readonly atOnce: number
}

interface Case {
  readonly name: string
  isPossible(trial: ApplicationTrial): boolean
  /** @throws AssertionError */
  run(trial: ApplicationTrial): Promise<void>
}

const isAlwaysPossible = () => true
const canFail = ({ fail }: ApplicationTrial) => fail !== undefined

export const CASES: readonly Case[] = [
  { name: 'first and repeat', isPossible: isAlwaysPossible, run: tryRepeat },
  { name: 'race', isPossible: isAlwaysPossible, run: tryRace },
  { name: 'other body', isPossible: ({ hasOther }) => hasOther, run: tryOtherBody },
  { name: 'failure and retry', isPossible: canFail, run: tryFailure },
  { name: 'crash between effect and answer', isPossible: canFail, run: tryCrash },
  {
    name: 'other body after a crash',
    isPossible: (trial) => canFail(trial) && trial.hasOther && trial.countsEffects,
    run: tryOtherAfterCrash,
  },
]

const CAUSES = 'Is the route behind the middleware, and do both requests have one scope?'

async function tryRepeat(trial: ApplicationTrial): Promise<void> {
  const key = trial.newKey()
  const first = await sendFirst(trial, key)
  const before = await trial.effects()
  const again = await trial.send(key)
  await assertSameCount(trial, before, 'the same request was sent again with the same key', again)
  if (isRefusedAs('answer_not_kept', again)) return
  if (!isReplay(again)) {
    if (!isSuccess(again)) {
      failCase(
        'the repeat did not get the first answer: it was refused.',
        describeAnswer(again),
        `${describeAnswer(first)}, replayed, or a refusal with the code answer_not_kept`,
      )
    }
    failCase(
      `the handler ran twice: the same request with the same key was answered anew (${describeAnswer(again)}). ${CAUSES}`,
      describeAnswer(again),
      `${describeAnswer(first)}, replayed`,
    )
  }
  if (again.status !== first.status || again.body !== first.body) {
    failCase('the repeat got another answer than the first request.', describeAnswer(again), describeAnswer(first))
  }
}

async function tryRace(trial: ApplicationTrial): Promise<void> {
  const key = trial.newKey()
  const before = await trial.effects()
  const answers = await Promise.all(Array.from({ length: trial.atOnce }, () => trial.send(key)))
  const ran = answers.filter((answer) => isSuccess(answer) && !isReplay(answer))
  const after = await trial.effects()
  const all = answers.map(describeAnswer).join('; ')
  if (ran.length > 1) {
    failCase(
      `the handler ran ${describeCount(ran.length)}: of ${trial.atOnce} identical requests at once, ${ran.length} were carried out. Where several ` +
        'processes or copies of the store serve them, they need one store.',
      all,
      'one success; replays or 409 for the others',
    )
  }
  if (ran.length === 0)
    failCase(`of ${trial.atOnce} identical requests at once none was carried out.`, all, 'one success')
  const strange = answers.find((answer) => !isSuccess(answer) && !isForDuplicate(answer))
  if (strange !== undefined) {
    failCase(
      'one of several identical requests at once failed, instead of a replay or 409.',
      describeAnswer(strange),
      '409',
    )
  }
  if (before !== null && after !== before + 1) {
    failCase(
      `the effect took place ${describeCount((after ?? 0) - before)}: by ${trial.atOnce} identical requests at once.`,
      after,
      before + 1,
    )
  }
}

async function tryOtherBody(trial: ApplicationTrial): Promise<void> {
  const key = trial.newKey()
  await sendFirst(trial, key)
  const before = await trial.effects()
  const other = await trial.send(key, 'other')
  if (isReplay(other)) {
    failCase(
      'another body under the same key got the answer of the first: its client believes that it was carried out. Does `fingerprint` leave out the body?',
      describeAnswer(other),
      '409 or 422',
    )
  }
  if (isSuccess(other))
    failCase('another body under the same key was carried out.', describeAnswer(other), '409 or 422')
  if (other.status < 400 || other.status > 499) {
    failCase(
      'another body under the same key was not refused as the client’s mistake.',
      describeAnswer(other),
      '409 or 422',
    )
  }
  await assertSameCount(trial, before, 'another body was sent under the same key', other)
  const alone = await trial.send(trial.newKey(), 'other')
  if (isSuccess(alone)) return
  failCase(
    'the other body was refused under a key of its own too, so it shows nothing: pass an `otherBody` that the handler accepts.',
    describeAnswer(alone),
    'a status from 200 to 399',
  )
}

async function tryFailure(trial: ApplicationTrial): Promise<void> {
  const key = trial.newKey()
  const before = await trial.effects()
  const failed = await sendFailing(trial, key, 'before')
  const retry = await sendRetry(trial, key)
  const after = await trial.effects()
  if (before !== null && (after ?? 0) > before + 1) {
    failCase(
      `the effect took place ${describeCount((after ?? 0) - before)} after a failure and its retry: the first attempt had it, and then failed. ` +
        'Let what may fail come before it, send `deriveKey(label)` with it so that the other side removes the duplicate, or look first ' +
        'where `previousOutcome` is `unknown`.',
      after,
      before + 1,
    )
  }
  if (isRefusedAs('outcome_unknown', retry)) return
  // Some protocols keep refusals of the request itself, and replay them.
  if (isReplay(retry) && failed !== null && failed.status < 500 && failed.status === retry.status) return
  if (!isSuccess(retry) || isReplay(retry)) {
    const what = isReplay(retry) ? 'was given the first failure again' : 'was not carried out'
    failCase(`a failure is final: the retry ${what}.`, describeAnswer(retry), SUCCESS_OR_UNKNOWN)
  }
  assertEffectTookPlace(before, after, 'the retry of a failure')
}

async function tryCrash(trial: ApplicationTrial): Promise<void> {
  const key = trial.newKey()
  const before = await trial.effects()
  await sendFailing(trial, key, 'after')
  const retry = await sendRetry(trial, key)
  const after = await trial.effects()
  if (before !== null && (after ?? 0) > before + 1) {
    failCase(
      `the effect took place ${describeCount((after ?? 0) - before)}: the first attempt died after it, and the retry did it again. Send ` +
        '`deriveKey(label)` with it so that the other side removes the duplicate, look first where `previousOutcome` is `unknown`, put it ' +
        'into one transaction with the record, or refuse by `unknownOutcome: "refuse"`.',
      after,
      before + 1,
    )
  }
  if (isRefusedAs('outcome_unknown', retry)) return
  if (!isSuccess(retry)) {
    failCase(
      'after a crash, the retry was neither carried out nor refused as an unknown outcome.',
      describeAnswer(retry),
      SUCCESS_OR_UNKNOWN,
    )
  }
  assertEffectTookPlace(before, after, 'the retry after a crash')
}

/**
 * While an outcome is unknown, the key is bound to its body; after a certain failure it is free. The count tells a handler that has undone
 * its effect, or another side that removes the duplicate, from one that has hidden it.
 */
async function tryOtherAfterCrash(trial: ApplicationTrial): Promise<void> {
  const key = trial.newKey()
  const before = (await trial.effects()) ?? 0
  const failed = await sendFailing(trial, key, 'after')
  if ((await trial.effects()) !== before + 1) return
  const other = await trial.send(key, 'other')
  const after = (await trial.effects()) ?? 0
  if (after <= before + 1) return
  failCase(
    `the effect took place ${describeCount(after - before)} under one key: after \`fail("after")\` it had taken place, but the outcome was certain, ` +
      'so the key was free, and a corrected request was carried out. Where the effect may have taken place, answer with 5xx or let the ' +
      'error pass, and let `isCertainFailure` return false.',
    `${failed === null ? 'no answer' : describeAnswer(failed)}; then, to another body, ${describeAnswer(other)}`,
    'a failure with 5xx; then 409 or 422',
  )
}

/** `null`: an attempt without an answer, as its client sees it when the connection breaks or a Fetch handler throws. */
async function sendFailing(trial: ApplicationTrial, key: string, when: 'before' | 'after'): Promise<OnceAnswer | null> {
  await trial.fail?.(when)
  const answer = await trial.send(key).catch((error) => {
    if (error instanceof AssertionError) throw error
    return null
  })
  if (answer !== null && isSuccess(answer)) {
    failCase(
      `the request was answered with a success, although \`fail("${when}")\` was called: the handler hides the failure, or \`fail\` does nothing.`,
      describeAnswer(answer),
      'a failure',
    )
  }
  return answer
}

const IN_FLIGHT_PAUSE_MS = 50
const IN_FLIGHT_MS = 10_000

/** As a client retries: after an attempt without an answer, its record may be in flight for a moment more. */
async function sendRetry(trial: ApplicationTrial, key: string): Promise<OnceAnswer> {
  for (const until = performance.now() + IN_FLIGHT_MS; ; ) {
    const answer = await trial.send(key)
    if (!isRefusedAs('in_flight', answer) || performance.now() > until) return answer
    await new Promise((resolve) => setTimeout(resolve, IN_FLIGHT_PAUSE_MS))
  }
}

const ANSWER_MS = 30_000

/** The timer keeps the process alive: a handler that waits for nothing would end it without a word. */
export async function limitAnswerTime(answer: Promise<OnceAnswer>): Promise<OnceAnswer> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, ANSWER_MS, null)
  })
  const first = await Promise.race([answer, late]).finally(() => clearTimeout(timer))
  if (first !== null) return first
  failCase(
    'a request was not answered. Whatever becomes of the effect, the handler must respond or fail; on Express 4 an async handler passes its ' +
      'error to `next`.',
    `nothing within ${ANSWER_MS / 1_000} seconds`,
    'an answer',
  )
}

/** A success must be true. */
function assertEffectTookPlace(before: number | null, after: number | null, which: string): void {
  if (before === null || after === before + 1) return
  failCase(`${which} was answered with a success, but the effect never took place.`, after, before + 1)
}

async function sendFirst(trial: ApplicationTrial, key: string): Promise<OnceAnswer> {
  const before = await trial.effects()
  const answer = await trial.send(key)
  if (!isSuccess(answer)) {
    failCase(
      'the first request was not carried out: expectOnce needs one that succeeds.',
      describeAnswer(answer),
      'a status from 200 to 399',
    )
  }
  const after = await trial.effects()
  if (before !== null && after !== before + 1) {
    failCase(
      `one request succeeded, and \`effects\` counted ${(after ?? 0) - before} for it: it must count what the handler does, such as transfers.`,
      after,
      before + 1,
    )
  }
  return answer
}

async function assertSameCount(
  trial: ApplicationTrial,
  before: number | null,
  when: string,
  answer: OnceAnswer,
): Promise<void> {
  const after = await trial.effects()
  if (before === null || after === before) return
  failCase(
    `the handler ran twice: ${when}, and the effect took place again (${describeAnswer(answer)}). ${CAUSES}`,
    after,
    before,
  )
}

function isSuccess({ status }: OnceAnswer): boolean {
  return status >= 200 && status < 400 && status !== 307 && status !== 308
}

function isReplay({ headers }: OnceAnswer): boolean {
  return String(headers['idempotent-replayed']) === 'true'
}

const SUCCESS_OR_UNKNOWN = 'a success, or a refusal with the code outcome_unknown'

type Code = 'in_flight' | 'outcome_unknown' | 'answer_not_kept'

/** By the code, wherever `renderProblem` puts it; of the three, only `in_flight` may succeed later. */
function isRefusedAs(code: Code, { status, headers, body }: OnceAnswer): boolean {
  if (status < 400) return false
  if (body.includes(code)) return true
  return code === 'in_flight' && status < 500 && String(headers['x-should-retry']) === 'true'
}

/** What a duplicate gets at once, or behind an answer that was not kept. */
function isForDuplicate(answer: OnceAnswer): boolean {
  return answer.status === 409 || isRefusedAs('in_flight', answer) || isRefusedAs('answer_not_kept', answer)
}

const MOST_CHARACTERS = 2_000
const MOST_FRAMES = 3

function describeAnswer({ status, body, headers }: OnceAnswer): string {
  const whole = /^\s*<(?:!doctype|html)/i.test(body) ? toText(body) : body
  const text = whole.length > MOST_CHARACTERS ? `${whole.slice(0, MOST_CHARACTERS)}…` : whole
  return `${status}${isReplay({ status, body, headers }) ? ' replayed' : ''} ${text}`.trimEnd()
}

/** An error page, such as Express's, as text: what failed, and the first lines of the stack, behind which a cause may follow. */
function toText(page: string): string {
  let frames = 0
  return page
    .replace(/<head\b[\s\S]*?<\/head>/i, '')
    .replace(/<br\b[^>]*>/gi, '\n')
    .replace(/<[^>]*>/g, '')
    .replace(/&(nbsp|lt|gt|quot|#39|amp);/g, (_, name: keyof typeof ENTITIES) => ENTITIES[name])
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && (!line.startsWith('at ') || ++frames <= MOST_FRAMES))
    .join('\n')
}

const ENTITIES = { nbsp: ' ', lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' } as const

function describeCount(count: number): string {
  return ['not at all', 'once', 'twice'][count] ?? `${count} times`
}

function failCase(what: string, actual: unknown, expected: unknown): never {
  const message = `${what}\n\n  expected: ${expected}\n  seen:     ${actual}`
  throw new AssertionError({ message, actual, expected, operator: 'expectOnce', stackStartFn: failCase })
}
