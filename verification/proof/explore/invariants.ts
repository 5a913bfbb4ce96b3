import type { Check } from '../checks.js'
import { watchCommand } from './command-invariants.js'
import type { Entry, Told } from './history.js'
import { type Book, bookOf, forget, type Ledger, mayHaveHadEffect, noPart, type Standing } from './ledger.js'
import { watchStep } from './step-invariants.js'
import { TIMES } from './times.js'

/** Applies a check; `what` is said of a violation. */
export type Expect = (check: Check, holds: boolean, what: string) => void

/** Writes down what happened, and checks it against what happened before. */
export function watch(ledger: Ledger, entry: Entry, refusesUnknown: boolean, expect: Expect): void {
  if (entry.type === 'arrived') {
    ledger.standings[entry.by] = newcomer(entry)
    return
  }
  if (entry.type === 'record_lost') {
    forget(ledger, entry.scope)
    return
  }
  const standing = ledger.standings[entry.by] as Standing
  const { scope } = standing
  if (bookOf(ledger, scope).livesUntil <= entry.at) forget(ledger, scope)
  const book = bookOf(ledger, scope)

  switch (entry.type) {
    case 'executed':
      watchCommand(book, standing, entry, refusesUnknown, expect)
      break
    case 'heard':
      if (entry.reply !== null && 'acquired' in entry.reply && entry.reply.acquired) {
        standing.confirmed = true
        standing.now.heard = true
      }
      break
    case 'ran':
      watchRun(ledger, book, standing, entry, refusesUnknown, expect)
      break
    case 'ended':
      if (standing.run !== null) standing.run.end = entry.end
      standing.waitsSince = entry.at
      break
    case 'told':
      watchTold(ledger, book, standing, entry.told, entry.at, expect)
      standing.waitsSince = null
      break
    case 'step_called':
    case 'step_ended':
    case 'step_got':
    case 'step_failed':
      watchStep(ledger, book, standing, entry, expect)
      break
    case 'said':
      if (entry.event === 'completion_pending') standing.pending = true
      break
    case 'crashed':
      standing.isDead = true
      standing.wasStopped = true
      break
    case 'stalled':
      standing.wasStopped = true
  }
}

function newcomer({ by, scope, content, at }: Extract<Entry, { type: 'arrived' }>): Standing {
  return {
    by,
    scope,
    content,
    waitsSince: at,
    wasStopped: false,
    isDead: false,
    confirmed: false,
    run: null,
    pending: false,
    storedEver: false,
    now: noPart(),
  }
}

function watchRun(
  ledger: Ledger,
  book: Book,
  standing: Standing,
  { attempt, previousOutcome }: Extract<Entry, { type: 'ran' }>,
  refusesUnknown: boolean,
  expect: Expect,
): void {
  const { by, scope, now } = standing
  const isInTime = standing.confirmed && standing.waitsSince !== null
  expect('S10', isInTime, `the handler of request ${by} runs, although its claim was not confirmed`)
  standing.waitsSince = null
  standing.run = { attempt, previousOutcome, end: null, steps: [] }
  now.ran = now.claimed
  if (!now.ran) return

  const others = ledger.standings.filter((other) => other.by !== by && other.scope === scope && other.now.ran)
  const open = others.filter(mayHaveHadEffect)
  if (previousOutcome !== 'unknown') {
    expect(
      'S5',
      open.length === 0,
      `request ${by} is told '${previousOutcome}', but an earlier run may have had effect`,
    )
  }
  if (previousOutcome === 'none') {
    expect('S5', others.length === 0, `request ${by} is told 'none', but another handler ran before`)
  }
  const most = refusesUnknown ? 1 : 1 + book.takeovers
  expect(
    'S5',
    open.length + 1 <= most,
    `${open.length + 1} runs may have had effect, after ${book.takeovers} takeovers`,
  )
}

function watchTold(ledger: Ledger, book: Book, standing: Standing, told: Told, at: number, expect: Expect): void {
  const { by, scope, content, waitsSince } = standing
  if (waitsSince !== null && !standing.wasStopped) {
    expect(
      'S10',
      at <= waitsSince + TIMES.storeTimeoutMs,
      `the client of request ${by} waited for ${at - waitsSince} ms`,
    )
  }
  if (told.kind !== 'success') return

  const origin = ledger.standings.find((each) => told.text.includes(`"run ${each.by}"`))
  const isReal = origin?.run?.end === 'success' && told.text === answerOfRun(origin.by)
  expect('S8', isReal, `request ${by} is told an answer that no handler gave: ${told.text}`)
  if (origin === undefined) return
  const fits = origin.scope === scope && origin.content === content
  expect('S9', fits, `request ${by} is told the answer to a request for something else`)

  const holds = book.holder?.by === by && at < book.holder.until
  const isExcused = origin.by === by && origin.pending && (holds || !origin.now.claimed)
  expect('S3', origin.storedEver || isExcused, `request ${by} is told a success that was not stored`)
  // Of a record that is gone, or of a completion that an event called pending.
  if (!origin.now.stored && (origin.storedEver || origin.pending || !origin.now.ran)) return
  book.seen ??= told.text
  expect('S2', book.seen === told.text, `request ${by} is told ${told.text}, where another was told ${book.seen}`)
}

function answerOfRun(by: number): string {
  return JSON.stringify([201, '', [['Content-Type', 'text/plain']], `run ${by}`])
}
