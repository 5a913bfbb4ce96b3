import { openSync, readFileSync, writeSync } from 'node:fs'

/** What a service notes of itself, in the very moment. */
export type Note =
  | { readonly what: 'sent'; readonly id: number; readonly command: CommandName; readonly about: CommandFacts }
  | { readonly what: 'replied'; readonly id: number; readonly reply: Reply }
  | { readonly what: 'unanswered'; readonly id: number; readonly reason: string }
  /** A handler has come to its books. */
  | ({ readonly what: 'run'; readonly previousOutcome: string } & RunFacts)
  /** Its effect has taken place; `entry`: what its answer will name; `null`: perhaps, the reply was lost. */
  | ({ readonly what: 'effect'; readonly entry: string | null } & RunFacts)
  | { readonly what: 'told'; readonly line: LogLine }
  /** The work of a step is called, and has returned. */
  | ({ readonly what: 'step called'; readonly told: 'none' | 'unknown' } & StepFacts)
  | ({ readonly what: 'step over' } & StepFacts)
  /** A handler has the result of a step. */
  | ({ readonly what: 'step got' } & StepFacts)

export type CommandName = 'begin' | 'renew' | 'complete' | 'release' | 'step'

export interface CommandFacts {
  readonly recordKey: string
  readonly token: string
  readonly uncertain?: boolean
  /** The change that it records. */
  readonly step?: { readonly label: string; readonly state: string }
}

export interface Reply {
  readonly outcome: 'acquired' | 'refused' | 'ok' | 'stale'
  readonly attempt?: number
  readonly previousOutcome?: string
  /** The state of the record that stood in the way. */
  readonly met?: string
}

export interface RunFacts {
  readonly scope: string
  readonly key: string
  readonly attempt: number
  /** Which body it was sent with. */
  readonly reference: string
}

export interface StepFacts extends RunFacts {
  readonly label: string
  /** Of the call: its result. */
  readonly id: string
}

/** The service's own log; an event's line has the event's name. */
export interface LogLine {
  readonly msg: string
  readonly scope?: string
  readonly key?: string
  readonly attempt?: number
}

/** `at` is the same clock in all processes; `process`: a service's number, and how often it was started before. */
export type Entry = Note & { readonly at: number; readonly process: string }

/** Milliseconds on the machine's clock that never jumps. */
export function instant(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}

/** Each note is written before its function returns: it outlives a kill. */
export function openJournal(path: string, name: string): (note: Note) => void {
  const file = openSync(path, 'a')
  return (note) => void writeSync(file, `${JSON.stringify({ at: instant(), process: name, ...note })}\n`)
}

/** In the order of time. */
export function readJournals(paths: readonly string[]): Entry[] {
  return paths
    .flatMap((path) => readFileSync(path, 'utf8').split('\n'))
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Entry)
    .sort((a, b) => a.at - b.at)
}
