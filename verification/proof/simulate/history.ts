import type {
  Answer,
  BeginReply,
  Claim,
  CommandReply,
  machine,
  Ownership,
  PreviousOutcome,
  StepChange,
} from 'once-per-key/core'
import type { IdempotencyEvent } from 'once-per-key/http'

/** A client's request, as one instance was asked. */
export interface Request {
  readonly id: number
  readonly scope: string
  readonly key: string
  /** Which of the two bodies that clients send. */
  readonly content: number
  readonly instance: number
  readonly isProbe: boolean
  readonly askedAt: number
  /** Of its claim; unknown until that is sent. */
  token: string | null
  /** Its client has gone. */
  isLeft: boolean
  /** Lets its client go. */
  leave: () => void
  /** The last arrival of which the instance has the reply. */
  heard: Arrival | null
  /** Its last `begin`. */
  asked: Command | null
  run: Run | null
}

export type CommandName = 'begin' | 'renew' | 'complete' | 'release' | 'step'
export type Terms = { readonly token: string } & Partial<
  Claim & Ownership & StepChange & { readonly answer: Answer; readonly failedMs: number }
>

/** A command, as an instance sent it. */
export interface Command {
  readonly id: number
  readonly name: CommandName
  readonly storageKey: string
  readonly terms: Terms
  readonly request: Request
  readonly sentAt: number
  /** It arrives twice. */
  isDuplicated: boolean
  /** Something befalls it, or its reply, on the way. */
  isHindered: boolean
}

/** A command that the store took; of a duplicated one there are two. */
export interface Arrival {
  readonly command: Command
  readonly reply: BeginReply | CommandReply
  /** What stood before and stands now, where the store lets us see it. */
  readonly before?: machine.StoredRecord | null
  readonly after?: machine.StoredRecord | null
  /** Which life of the record it met: for the checker to fill in. */
  epoch: number
}

/** A run of the handler. */
export interface Run {
  readonly id: number
  readonly request: Request
  readonly attempt: number
  readonly previousOutcome: PreviousOutcome
  /** It has said so. */
  mayHaveEffect: boolean
  hasPaid: boolean
  /** The calls of its steps' work, in their order. */
  readonly steps: StepCall[]
  /** How it ended, and with what; `null`: not yet. */
  end: RunEnd | null
}

/** The work of a step is called. */
export interface StepCall {
  readonly label: string
  readonly told: 'none' | 'unknown'
  /** `null`: it is still at the bank. */
  end: 'done' | 'thrown' | 'declined' | null
  endedAt: number
  /** It certainly had no effect, and nothing that began after it may have had one. */
  isTakenBack: boolean
  /** Its result is in a record, or was; or the record was another's when it came. */
  isRecorded: boolean
}

export interface RunEnd {
  readonly succeeded: boolean
  /** It failed, and certainly had no effect. */
  readonly isCertain: boolean
  readonly answer: Answer | null
  readonly at: number
}

/** What a client is told. */
export type Told =
  | { readonly type: 'own'; readonly end: RunEnd }
  | { readonly type: 'replayed'; readonly answer: Answer }
  | { readonly type: 'problem'; readonly code: string }

/** All that can be seen from outside: what a checker may go by. */
export type Observation = { readonly at: number } & (
  | { readonly type: 'asked' | 'left'; readonly request: Request }
  | { readonly type: 'sent'; readonly command: Command }
  | { readonly type: 'arrived' | 'heard'; readonly arrival: Arrival }
  | { readonly type: 'failed'; readonly command: Command; readonly where: 'on its way' | 'at the store' }
  | { readonly type: 'started' | 'affected' | 'ended'; readonly run: Run }
  | { readonly type: 'step called'; readonly run: Run; readonly call: StepCall }
  | { readonly type: 'step ended'; readonly run: Run; readonly call: StepCall }
  /** `from`: the run whose work made the result; `isDecoded`: it is as the store keeps it. */
  | {
      readonly type: 'step got'
      readonly run: Run
      readonly label: string
      readonly from: number
      readonly isDecoded: boolean
    }
  | { readonly type: 'told'; readonly request: Request; readonly told: Told; readonly stalledMs: number }
  | { readonly type: 'event'; readonly instance: number; readonly event: IdempotencyEvent }
  | { readonly type: 'lost'; readonly scope: string | null; readonly key: string | null }
  | { readonly type: 'booted' | 'crashed' | 'stalled' | 'resumed' | 'cut off'; readonly instance: number }
  | { readonly type: 'faults ended' }
)
