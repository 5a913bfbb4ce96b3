import { AssertionError } from 'node:assert'
import type { OnceAnswer } from './once-app.js'

/** What a case tries an application with. */
export interface Trial {
  send(key: string, body?: 'other'): Promise<OnceAnswer>
  newKey(): string
  /** `null` where the application does not say. */
  effects(): Promise<number | null>
  readonly fail: ((when: 'before' | 'after') => void | Promise<void>) | undefined
  readonly hasOther: boolean
  readonly atOnce: number
}

interface Case {
  readonly name: string
  isPossible(trial: Trial): boolean
  /** @throws AssertionError */
  run(trial: Trial): Promise<void>
}

const always = () => true
const canFail = ({ fail }: Trial) => fail !== undefined

export const CASES: readonly Case[] = [
  { name: 'first and repeat', isPossible: always, run: repeat },
  { name: 'race', isPossible: always, run: race },
  { name: 'other body', isPossible: ({ hasOther }) => hasOther, run: otherBody },
  { name: 'failure and retry', isPossible: canFail, run: failure },
  { name: 'crash between effect and answer', isPossible: canFail, run: crash },
]

async function repeat(trial: Trial): Promise<void> {
  const key = trial.newKey()
  const first = await carriedOut(trial, key)
  const before = await trial.effects()
  const again = await trial.send(key)
  await sameCount(trial, before, 'the same request was sent again with the same key', again)
  if (!isReplay(again)) {
    broken(
      `the handler ran twice: the same request with the same key was answered anew (${brief(again)}). ` +
        'Is the route behind the middleware, and do both requests have one scope?',
      brief(again),
      `${brief(first)}, replayed`,
    )
  }
  if (again.status !== first.status || again.body !== first.body) {
    broken('the repeat got another answer than the first request.', brief(again), brief(first))
  }
}

async function race(trial: Trial): Promise<void> {
  const key = trial.newKey()
  const before = await trial.effects()
  const answers = await Promise.all(Array.from({ length: trial.atOnce }, () => trial.send(key)))
  const ran = answers.filter((answer) => isSuccess(answer) && !isReplay(answer))
  const after = await trial.effects()
  const all = answers.map(brief).join('; ')
  if (ran.length > 1) {
    broken(
      `the handler ran ${times(ran.length)}: of ${trial.atOnce} identical requests at once, ${ran.length} were carried out. Where several ` +
        'processes or copies of the store serve them, they need one store.',
      all,
      'one success; replays or 409 for the others',
    )
  }
  if (ran.length === 0)
    broken(`of ${trial.atOnce} identical requests at once none was carried out.`, all, 'one success')
  const strange = answers.find((answer) => !isSuccess(answer) && answer.status !== 409 && answer.status !== 425)
  if (strange !== undefined) {
    broken('one of several identical requests at once failed, instead of a replay or 409.', brief(strange), '409')
  }
  if (before !== null && after !== before + 1) {
    broken(
      `the effect took place ${times((after ?? 0) - before)}: by ${trial.atOnce} identical requests at once.`,
      after,
      before + 1,
    )
  }
}

async function otherBody(trial: Trial): Promise<void> {
  const key = trial.newKey()
  await carriedOut(trial, key)
  const before = await trial.effects()
  const other = await trial.send(key, 'other')
  if (isReplay(other)) {
    broken(
      'another body under the same key got the answer of the first: its client believes that it was carried out. Does `fingerprint` leave out the body?',
      brief(other),
      '409 or 422',
    )
  }
  if (isSuccess(other)) broken('another body under the same key was carried out.', brief(other), '409 or 422')
  if (other.status < 400 || other.status > 499) {
    broken('another body under the same key was not refused as the client’s mistake.', brief(other), '409 or 422')
  }
  await sameCount(trial, before, 'another body was sent under the same key', other)
}

async function failure(trial: Trial): Promise<void> {
  const key = trial.newKey()
  const before = await trial.effects()
  await trial.fail?.('before')
  const failed = await trial.send(key)
  if (isSuccess(failed))
    broken('the handler answered with a success although its effect failed.', brief(failed), 'a failure')
  const retry = await trial.send(key)
  if (isRefusedAsUnknown(retry)) return
  if (isReplay(retry))
    broken('a failure is final: the retry was given the first failure again.', brief(retry), 'a success')
  if (!isSuccess(retry)) broken('a failure is final: the retry was not carried out.', brief(retry), 'a success')
  const after = await trial.effects()
  if (before !== null && after !== before + 1) {
    broken(`the effect took place ${times((after ?? 0) - before)} after a failure and its retry.`, after, before + 1)
  }
}

async function crash(trial: Trial): Promise<void> {
  const key = trial.newKey()
  const before = await trial.effects()
  await trial.fail?.('after')
  const lost = await trial.send(key)
  if (isSuccess(lost)) {
    broken('`fail("after")` did nothing: the request was answered with a success.', brief(lost), 'a failure')
  }
  const retry = await trial.send(key)
  const after = await trial.effects()
  if (before !== null && (after ?? 0) > before + 1) {
    broken(
      `the effect took place ${times((after ?? 0) - before)}: the first attempt died after it, and the retry did it again. Send ` +
        '`deriveKey(label)` with it so that the other side removes the duplicate, look first where `previousOutcome` is `unknown`, put it ' +
        'into one transaction with the record, or refuse by `unknownOutcome: "refuse"`.',
      after,
      before + 1,
    )
  }
  if (!isSuccess(retry) && !isRefusedAsUnknown(retry)) {
    broken(
      'after a crash, the retry was neither carried out nor refused with a reason.',
      brief(retry),
      'a success, or 409 outcome_unknown',
    )
  }
}

async function carriedOut(trial: Trial, key: string): Promise<OnceAnswer> {
  const before = await trial.effects()
  const answer = await trial.send(key)
  if (!isSuccess(answer)) {
    broken(
      'the first request was not carried out: expectOnce needs one that succeeds.',
      brief(answer),
      'a status from 200 to 399',
    )
  }
  const after = await trial.effects()
  if (before !== null && after !== before + 1) {
    broken(`one request had its effect ${times((after ?? 0) - before)}, as \`effects\` counts them.`, after, before + 1)
  }
  return answer
}

async function sameCount(trial: Trial, before: number | null, when: string, answer: OnceAnswer): Promise<void> {
  const after = await trial.effects()
  if (before === null || after === before) return
  broken(`the handler ran twice: ${when}, and the effect took place again (${brief(answer)}).`, after, before)
}

function isSuccess({ status }: OnceAnswer): boolean {
  return status >= 200 && status < 400 && status !== 307 && status !== 308
}

function isReplay({ headers }: OnceAnswer): boolean {
  return String(headers['idempotent-replayed']) === 'true'
}

function isRefusedAsUnknown({ status, body }: OnceAnswer): boolean {
  return status === 409 && /\boutcome_unknown\b/.test(body)
}

const MOST_CHARACTERS = 200

function brief({ status, body, headers }: OnceAnswer): string {
  const text = body.length > MOST_CHARACTERS ? `${body.slice(0, MOST_CHARACTERS)}…` : body
  return `${status}${isReplay({ status, body, headers }) ? ' replayed' : ''} ${text}`.trimEnd()
}

function times(count: number): string {
  return ['not at all', 'once', 'twice'][count] ?? `${count} times`
}

function broken(what: string, actual: unknown, expected: unknown): never {
  const message = `${what}\n\n  expected: ${expected}\n  seen:     ${actual}`
  throw new AssertionError({ message, actual, expected, operator: 'expectOnce', stackStartFn: broken })
}
