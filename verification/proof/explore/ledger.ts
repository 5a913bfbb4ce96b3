import type { BeginReply } from 'once-per-key/core'
import type { Content, End, Label, StepEnd } from './history.js'

/** What the history says of one scope's key, for as long as its record lives. Nothing here asks the machine. */
export interface Book {
  /** Whose command last made the record what it is; `null`: there is none. */
  owner: number | null
  /** Who claimed the key and has not ended; the lease may have lapsed. */
  holder: { by: number; until: number } | null
  livesUntil: number
  lastAttempt: number
  /** What a claim must ask for. */
  bound: Content | null
  /** The answer that was stored. */
  stored: string | null
  /** The first success that a client saw. */
  seen: string | null
  takeovers: number
  steps: BookedSteps
}

/** The steps of a record. */
export interface BookedSteps {
  /** Whose result is recorded. */
  readonly results: Partial<Record<Label, number>>
  /** Who has recorded a beginning, and not taken it back, or has. */
  readonly marks: Partial<Record<Label, Record<number, 'begun' | 'undone'>>>
}

/** A call of a step's work. */
export interface StepPart {
  readonly label: Label
  readonly told: 'none' | 'unknown'
  /** `null`: it is still at the bank. */
  end: StepEnd | null
  /** Its result is in a record, or was. */
  isRecorded: boolean
}

/** What the history says of one request. */
export interface Standing {
  readonly by: number
  readonly scope: string
  readonly content: Content
  /** Since when its client waits: for a decision, then for its answer. `null`: it was told. */
  waitsSince: number | null
  /** It was stopped or has died: it can keep no time limit. */
  wasStopped: boolean
  isDead: boolean
  /** It heard in time that the key is its own. */
  confirmed: boolean
  run: { attempt: number; previousOutcome: string; end: End | null; readonly steps: StepPart[] } | null
  /** An event said that its completion was pending. */
  pending: boolean
  storedEver: boolean
  /** What it did to the record that lives now. */
  now: Part
}

/** A request's part in a record: it ends with the record. */
export interface Part {
  firstReply: BeginReply | null
  claimed: boolean
  /** The reply to its last claim reached it. */
  heard: boolean
  released: boolean
  uncertain: boolean
  ran: boolean
  stored: boolean
  /** The calls of steps that it made. */
  readonly steps: StepPart[]
}

export interface Ledger {
  readonly books: Map<string, Book>
  readonly standings: Standing[]
}

export function emptyLedger(): Ledger {
  return { books: new Map(), standings: [] }
}

export function emptyBook(): Book {
  return {
    owner: null,
    holder: null,
    livesUntil: Number.POSITIVE_INFINITY,
    lastAttempt: 0,
    bound: null,
    stored: null,
    seen: null,
    takeovers: 0,
    steps: noSteps(),
  }
}

export function noSteps(): BookedSteps {
  return { results: {}, marks: {} }
}

export function noPart(): Part {
  return {
    firstReply: null,
    claimed: false,
    heard: false,
    released: false,
    uncertain: false,
    ran: false,
    stored: false,
    steps: [],
  }
}

export function bookOf(ledger: Ledger, scope: string): Book {
  let book = ledger.books.get(scope)
  if (book === undefined) {
    book = emptyBook()
    ledger.books.set(scope, book)
  }
  return book
}

/** Whatever comes now starts from nothing: the record's time was over, or the store lost it. */
export function forget(ledger: Ledger, scope: string): void {
  ledger.books.set(scope, emptyBook())
  for (const standing of ledger.standings) if (standing.scope === scope) standing.now = noPart()
}

/** Its handler ran and may have had its effect: anything but a refusal that says so, with no step that may have had its own. */
export function mayHaveHadEffect({ now, run }: Standing): boolean {
  return now.ran && run !== null && isOpenEnd(run)
}

export function isOpenEnd({ end, steps }: NonNullable<Standing['run']>): boolean {
  return end !== 'refusal' || !steps.every(isTakenBack)
}

/** It certainly had no effect, and no attempt before it may have had one. */
export function isTakenBack({ told, end }: StepPart): boolean {
  return told === 'none' && end === 'declined'
}

/**
 * Why an outcome may be unknown: it claimed, it did not end as a certain failure, and its handler started, or its process
 * never heard of the claim, was stopped meanwhile, or died.
 */
export function mayLeaveDoubt({ now, wasStopped }: Standing): boolean {
  const isSettled = now.released && !now.uncertain
  return now.claimed && !isSettled && (now.ran || !now.heard || wasStopped)
}
