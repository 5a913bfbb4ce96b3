import type { IdempotencyRecord } from 'once-per-key/core'
import type { KnownOutcome } from 'once-per-key/http'
import { assertCanAsk, confirm, NO_RECORD, reportUnchanged, SAID_NO } from '../asking.js'
import { type CommandLine, type Options, parseCount, parseRecordName, UsageError } from '../command-line.js'
import { assertResolution, createOperatorCommands, readRecord } from '../operator.js'
import { formatDuration, printJson, stripControlCharacters } from '../printed.js'
import { hasSealedAnswersWithoutKeys } from '../sealing.js'
import { printPrefixNotice, type Target } from '../target.js'
import { printRecord } from './inspect.js'

/** Settles an unknown outcome: after a look at the record, and only of the attempt that whoever typed it has looked at. */
export async function runResolve(line: CommandLine, target: Target): Promise<number> {
  const name = parseRecordName(line)
  const { options } = line
  const { store } = target
  const attempt = parseCount(options, 'attempt')
  if (attempt === undefined)
    throw new UsageError('--attempt N says which attempt you looked at: see once-per-key inspect.')
  const outcome = parseOutcome(options)
  await assertResolution({ ...name, attempt }, outcome)
  assertCanAsk(options)

  const record = await readRecord(store, name)
  if (record === null) printPrefixNotice(target)
  if (record === null || record.attempt !== attempt) {
    return reportUnchanged(options, record === null ? NO_RECORD : describeNewerAttempt(record), NOT_SETTLED)
  }
  if (typeof outcome === 'object' && (await hasSealedAnswersWithoutKeys(target))) {
    const wayOut = 'set ONCE_PER_KEY_SEALING_KEYS, or settle it without an answer'
    return reportUnchanged(
      options,
      `the answers of this store are sealed, and this one would not be: ${wayOut}`,
      NOT_SETTLED,
    )
  }
  if (!options.yes) {
    if (!options.json) printRecord(name, record, false)
    if (!(await confirm(buildQuestion(getOutcomeKind(outcome), record))))
      return reportUnchanged(options, SAID_NO, NOT_SETTLED)
  }
  const resolved = await createOperatorCommands(store).resolve({ ...name, attempt }, outcome)
  if (!resolved.ok) return reportUnchanged(options, describeRefusal(resolved.record, attempt), NOT_SETTLED)
  const forgotten = outcome === 'failed' ? listDoneStepLabels(record) : []
  if (options.json) printJson({ settled: true, attempt, ...(forgotten.length > 0 && { forgottenSteps: forgotten }) })
  else
    console.log(
      `Attempt ${attempt} ${RESULTS[getOutcomeKind(outcome)]}${describeForgottenSteps(forgotten, 'was forgotten and runs', 'were forgotten and run')}`,
    )
  return 0
}

/** The labels of the steps whose results are recorded: an operation that is settled as failed begins without them. */
function listDoneStepLabels(record: IdempotencyRecord): string[] {
  const { steps = [] } = record.state === 'completed' ? {} : record
  return steps.filter(({ state }) => state === 'done').map(({ label }) => label)
}

function describeForgottenSteps(labels: readonly string[], one: string, several: string): string {
  if (labels.length === 0) return ''
  const which = labels.map((label) => stripControlCharacters(JSON.stringify(label))).join(', ')
  return ` The recorded step${labels.length === 1 ? '' : 's'} ${which} ${labels.length === 1 ? one : several} again.`
}

function buildQuestion(kind: keyof typeof QUESTIONS, record: IdempotencyRecord): string {
  const done = kind === 'failed' ? listDoneStepLabels(record) : []
  if (done.length === 0) return QUESTIONS[kind]
  const told = describeForgottenSteps(done, 'is forgotten and runs', 'are forgotten and run').trimStart()
  return `${told} To go on after what is recorded, say no, and use --rerun.\n${QUESTIONS[kind]}`
}

function describeNewerAttempt({ attempt }: IdempotencyRecord): string {
  return `it is at attempt ${attempt} by now`
}

/** Whoever was asked may have taken long to answer. */
function describeRefusal(record: IdempotencyRecord | null, attempt: number): string {
  if (record !== null && record.attempt !== attempt) return describeNewerAttempt(record)
  return record?.state === 'in-flight'
    ? `it may still run: its lease lasts for ${formatDuration(record.leaseRemainingMs)} more`
    : `its outcome is known: it is ${record?.state ?? 'gone'}`
}

function getOutcomeKind(outcome: KnownOutcome): 'failed' | 'completed' | 'rerun' {
  return typeof outcome === 'string' ? outcome : 'completed'
}

const QUESTIONS = {
  failed: 'Settle it as failed: the next request runs?',
  completed: 'Settle it as completed: it never runs again?',
  rerun: 'Let it go on: the next request runs after the recorded steps?',
} as const

const RESULTS = {
  failed: 'is settled as failed: the key is free.',
  completed: 'is settled as completed: it never runs again.',
  rerun: 'may go on: the next request runs after the recorded steps.',
} as const

const NOT_SETTLED = { settled: false }

/** @throws UsageError */
function parseOutcome(options: Options): KnownOutcome {
  const { failed = false, completed = false, rerun = false, body } = options
  const status = parseCount(options, 'status')
  const type = options['content-type']
  if ([failed, completed, rerun].filter(Boolean).length !== 1)
    throw new UsageError('Say what became of it: either --failed or --completed, or --rerun.')
  const hasAnswer = body !== undefined || status !== undefined || type !== undefined
  if (!completed && hasAnswer)
    throw new UsageError(
      'What failed without effect, or goes on, has no answer: --status, --body and --content-type are for --completed.',
    )
  if (failed) return 'failed'
  if (rerun) return 'rerun'
  if (!hasAnswer) return 'completed'
  if (body === undefined) return { completed: { status: status ?? 200 } }
  if (type === undefined && !isJson(body)) throw new UsageError('--body is no JSON: say what it is by --content-type.')
  const headers = { 'Content-Type': type ?? 'application/json; charset=utf-8' }
  return { completed: { status: status ?? 200, body, headers } }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
