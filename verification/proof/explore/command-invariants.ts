import type { BeginReply, CommandReply } from 'once-per-key/core'
import { type Content, type Executed, textOf } from './history.js'
import type { Expect } from './invariants.js'
import { type Book, isOpenEnd, type Standing } from './ledger.js'
import { dropSteps, watchReleased, watchStepRecorded, watchTold } from './step-invariants.js'
import { FAILED_MS, TIMES } from './times.js'

/** What the store may do at a command, and what the record is from then on. */
export function watchCommand(
  book: Book,
  standing: Standing,
  entry: Executed & { at: number },
  refusesUnknown: boolean,
  expect: Expect,
): void {
  const { command, reply, before, after } = entry
  const succeeded = 'acquired' in reply ? reply.acquired : reply.ok
  const isOwner = book.owner === null || book.owner === standing.by
  if (!succeeded || (command.name !== 'begin' && !isOwner)) {
    const unchanged = before === after || JSON.stringify(before) === JSON.stringify(after)
    expect('S6', unchanged, `${command.name} of request ${standing.by} changed a record that was not its own`)
  }
  if (command.name === 'begin') watchBegin(book, standing, reply as BeginReply, entry.at, refusesUnknown, expect)
  else if ((reply as CommandReply).ok) watchEnd(book, standing, entry, expect)
}

function watchBegin(
  book: Book,
  { by, content, now }: Standing,
  reply: BeginReply,
  at: number,
  refusesUnknown: boolean,
  expect: Expect,
): void {
  const isOwn = book.owner === by
  const isOpen = isOwn && now.claimed && !now.released && book.stored === null
  const first = now.firstReply
  if (isOpen && first?.acquired) {
    // The steps that it has recorded meanwhile are in it, too.
    const isSame = JSON.stringify({ ...first, steps: [] }) === JSON.stringify({ ...reply, steps: [] })
    expect('S7', isSame, `the claim of request ${by} was sent again and got another reply than at first`)
  }
  if (!reply.acquired) {
    const answer = reply.record.state === 'completed' ? reply.record.answer : null
    if (book.stored !== null && book.bound === content) {
      const isShown = answer !== null && textOf(answer) === book.stored
      expect('S3', isShown, `request ${by} is not shown the answer that was stored`)
    } else if (book.stored !== null) {
      expect('S9', answer === null, `request ${by} is shown the answer to other content`)
    }
    return
  }

  const { attempt, previousOutcome } = reply
  const isFree = book.holder === null || book.holder.by === by || at >= book.holder.until
  expect('S1', isFree, `request ${by} claims while request ${book.holder?.by} holds a live lease`)
  expect('S4', book.stored === null, `request ${by} claims a key that was completed`)
  const fits = book.bound === null || book.bound === content
  expect('S9', fits, `request ${by} claims a key that is bound to other content`)
  if (isOwn) expect('S7', !now.released, `request ${by} released its claim, and its token claims again`)
  if (!isOpen) {
    expect('S6', attempt > book.lastAttempt, `attempt ${attempt} of request ${by} follows attempt ${book.lastAttempt}`)
    const isRefused = refusesUnknown && previousOutcome === 'unknown'
    expect('S5', !isRefused, `request ${by} claims a key whose outcome is unknown, against the policy`)
    if (previousOutcome === 'unknown') book.takeovers++
    now.firstReply = reply
    if (book.bound !== content) dropSteps(book)
  }
  watchTold(book, by, reply, expect)
  Object.assign(now, { claimed: true, heard: false, released: false, uncertain: previousOutcome === 'unknown' })
  hold(book, by, at, content)
  book.lastAttempt = attempt
}

function hold(book: Book, by: number, at: number, content: Content): void {
  book.owner = by
  book.holder = { by, until: at + TIMES.leaseMs }
  book.bound = content
  book.livesUntil = at + TIMES.retentionMs
}

/** Whether a run that has failed may have had its effect, or one before it. A claim that nobody ran had none. */
function isDoubtful(run: Standing['run']): boolean {
  return run !== null && (run.previousOutcome === 'unknown' || isOpenEnd(run))
}

/** An owner's command that was accepted. Where there was no record, it is written anew from what the owner shows. */
function watchEnd(book: Book, standing: Standing, entry: Executed & { at: number }, expect: Expect): void {
  const { command, at } = entry
  if (command.name === 'begin') return
  const { by, content, now, run } = standing
  const { own } = command
  const isAnew = book.owner === null
  if (isAnew) {
    book.lastAttempt = own.attempt
    now.claimed = command.name === 'renew' || command.name === 'step' || run !== null
    now.ran = run !== null
    now.uncertain = own.uncertain
  }
  switch (command.name) {
    case 'renew':
      hold(book, by, at, content)
      break
    case 'complete': {
      const text = textOf(command.own.answer)
      expect('S2', book.stored === null || book.stored === text, `request ${by} overwrites the answer that was stored`)
      expect('S6', !now.released, `request ${by} completes a claim that it had released`)
      hold(book, by, at, content)
      Object.assign(book, { holder: null, stored: text })
      standing.storedEver = true
      now.stored = true
      dropSteps(book)
      break
    }
    case 'step':
      // A late one changes nothing.
      if (entry.before === entry.after) break
      expect('S4', book.stored === null, `request ${by} records a step in a record that was completed`)
      expect('S6', !now.released, `request ${by} records a step in a claim that it had released`)
      hold(book, by, at, content)
      watchStepRecorded(book, standing, command.own, expect)
      break
    case 'release': {
      expect('S6', book.stored === null, `request ${by} releases a key that was completed`)
      expect('S5', own.uncertain === isDoubtful(run), `request ${by} is released with uncertain ${own.uncertain}`)
      if (now.released && !isAnew) break
      watchReleased(book, standing, entry, expect)
      const uncertain = own.uncertain || now.uncertain
      Object.assign(now, { released: true, uncertain })
      Object.assign(book, { owner: by, holder: null, bound: uncertain ? content : null })
      if (!uncertain) dropSteps(book)
      book.livesUntil = at + (uncertain ? TIMES.retentionMs : FAILED_MS)
    }
  }
}
