import { Buffer } from 'node:buffer'
import { type Answer, deriveKey, type IdempotencyRecord, type RecordName } from 'once-per-key/core'
import { type CommandLine, parseRecordName } from '../command-line.js'
import { readRecord } from '../operator.js'
import { type Facts, formatDuration, printFacts, printJson, stripControlCharacters } from '../printed.js'
import { isSealed } from '../sealing.js'
import { printPrefixNotice, type Target } from '../target.js'

export async function runInspect(line: CommandLine, target: Target): Promise<number> {
  const name = parseRecordName(line)
  const { json, 'show-body': showsBody = false, derive: label } = line.options
  const record = await readRecord(target.store, name)
  if (record === null) printPrefixNotice(target)
  const derived = record === null || label === undefined ? undefined : deriveKeyOfRecord(name, record, label)
  if (json)
    printJson(
      record && { ...name, ...toRecordJson(record, showsBody), ...(label !== undefined && { derivedKey: derived }) },
    )
  else if (record === null) console.log(describeMissingRecord(line))
  else {
    const shown = derived === null ? 'not known: the key is free, and bound to no request' : derived
    printRecord(name, record, showsBody, { 'derived key': shown })
  }
  return record === null || derived === null ? 1 : 0
}

function describeMissingRecord({ options: { namespace } }: CommandLine): string {
  return namespace === undefined
    ? 'There is no record of a request: the key is new, or its retention is over. For a runner say --namespace run.NAME, and for a ' +
        'webhook’s event --namespace webhook.'
    : `There is no record in ${stripControlCharacters(namespace)}: the key is new, or its retention is over.`
}

/** What `deriveKey(label)` returns to the handler of that record; `null`: the record is bound to no request any more. */
function deriveKeyOfRecord(name: RecordName, { fingerprint }: IdempotencyRecord, label: string): string | null {
  return fingerprint === null ? null : deriveKey({ ...name, fingerprint }, label)
}

/** The record as people read it. */
export function printRecord(name: object, record: IdempotencyRecord, showsBody: boolean, more: Facts = {}): void {
  const answer = record.state === 'completed' ? record.answer : null
  const body = answer?.body ?? null
  const isClosed = answer !== null && body !== null && isSealed(answer)
  printFacts({
    ...name,
    state: record.state,
    attempt: record.attempt,
    means: describeMeaning(record),
    [isLapsed(record) ? 'lease ended' : 'lease ends']: computeLeaseEnd(record),
    steps: describeSteps(record),
    fingerprint: record.fingerprint ?? undefined,
    ...more,
    status: answer === null || body === null ? undefined : isClosed ? 'sealed' : answer.status,
    body:
      answer === null
        ? undefined
        : body === null
          ? 'not kept'
          : `${body.byteLength} bytes${isClosed ? ', to be read with ONCE_PER_KEY_SEALING_KEYS' : showsBody ? '' : ' (--show-body)'}`,
  })
  for (const [header, value] of answer?.headers ?? [])
    console.log(`  ${stripControlCharacters(header)}: ${stripControlCharacters(value)}`)
  if (showsBody && body !== null && !isClosed)
    console.log(`\n${Buffer.from(body).toString('utf8').split('\n').map(stripControlCharacters).join('\n')}`)
}

/** Labels and states, and never a result. */
function describeSteps(record: IdempotencyRecord): string | undefined {
  if (record.state === 'completed' || record.steps === undefined) return undefined
  return record.steps.map(({ label, state }) => `${label} ${state}`).join(', ')
}

function isLapsed(record: IdempotencyRecord): boolean {
  return record.state === 'in-flight' && record.leaseRemainingMs <= 0
}

/** A lapse alone changes no record in the store, but for an operator the outcome is unknown from then on. */
export function toOperatorsRecord(record: IdempotencyRecord): IdempotencyRecord {
  return record.state === 'in-flight' && isLapsed(record) ? { ...record, uncertain: true } : record
}

/** The time of day, for a look into logs: by the clock of this machine, since a record tells only what is left. */
function computeLeaseEnd(record: IdempotencyRecord): string | undefined {
  return record.state === 'in-flight' ? new Date(Date.now() + record.leaseRemainingMs).toISOString() : undefined
}

export function describeMeaning(record: IdempotencyRecord): string {
  switch (record.state) {
    case 'in-flight':
      return record.leaseRemainingMs > 0
        ? `it runs; its lease lasts ${formatDuration(record.leaseRemainingMs)} more`
        : `unknown: its owner has been silent for ${formatDuration(-record.leaseRemainingMs)} past its lease`
    case 'completed':
      return record.answer?.body === null
        ? 'it succeeded; retries get 409 answer_not_kept'
        : 'it succeeded; retries get its answer'
    case 'failed':
      return record.uncertain
        ? record.rerun === true
          ? 'unknown: it failed, and may have had its effect; the next request may go on with it'
          : 'unknown: it failed, and may have had its effect'
        : 'it failed without effect; the key is free'
  }
}

/** Bytes as text, and only where they are asked for. */
function toRecordJson(record: IdempotencyRecord, showsBody: boolean): object {
  if (record.state === 'in-flight') return { ...toOperatorsRecord(record), leaseEndsAt: computeLeaseEnd(record) }
  if (record.state !== 'completed' || record.answer === null) return record
  const { body, ...head } = record.answer
  if (body === null && isPlaceholder(head)) return { ...record, answer: { bodyBytes: null } }
  const shown = showsBody && body !== null ? { bodyBase64: Buffer.from(body).toString('base64') } : {}
  return { ...record, answer: { ...head, bodyBytes: body?.byteLength ?? null, ...shown } }
}

/** What stands in place of an answer that was erased, or never given: its status was nobody's. */
function isPlaceholder({ statusMessage, headers }: Omit<Answer, 'body'>): boolean {
  return statusMessage === '' && headers.length === 0
}
