import { Buffer } from 'node:buffer'
import type { IdempotencyRecord } from 'once-per-key/core'
import { type CommandLine, recordIn } from '../command-line.js'
import { recordOf } from '../operator.js'
import { harmless, inWords, printFacts, printJson } from '../printed.js'
import { type Target, tellPrefix } from '../target.js'

export async function inspect(line: CommandLine, target: Target): Promise<number> {
  const name = recordIn(line)
  const { json, 'show-body': showsBody = false } = line.options
  const record = await recordOf(target.store, name)
  if (record === null) tellPrefix(target, line.options)
  if (json) printJson(record && { ...name, ...asJson(record, showsBody) })
  else if (record === null) console.log('There is no record: the key is new, or its retention is over.')
  else print(name, record, showsBody)
  return record === null ? 1 : 0
}

/** The record as people read it. */
export function print(name: object, record: IdempotencyRecord, showsBody: boolean): void {
  const answer = record.state === 'completed' ? record.answer : null
  const body = answer?.body ?? null
  printFacts({
    ...name,
    state: record.state,
    attempt: record.attempt,
    means: meaningOf(record),
    fingerprint: record.fingerprint ?? undefined,
    status: answer === null ? undefined : body === null ? undefined : isSealed(answer) ? 'sealed' : answer.status,
    body:
      answer === null
        ? undefined
        : body === null
          ? 'not kept'
          : `${body.byteLength} bytes${showsBody ? '' : ' (--show-body)'}`,
  })
  for (const [header, value] of answer?.headers ?? []) console.log(`  ${harmless(header)}: ${harmless(value)}`)
  if (showsBody && body !== null)
    console.log(`\n${Buffer.from(body).toString('utf8').split('\n').map(harmless).join('\n')}`)
}

function isSealed({ status, statusMessage }: { readonly status: number; readonly statusMessage: string }): boolean {
  return status === 0 && statusMessage === 'sealed'
}

function meaningOf(record: IdempotencyRecord): string {
  switch (record.state) {
    case 'in-flight':
      return record.leaseRemainingMs > 0
        ? `it runs; its lease lasts ${inWords(record.leaseRemainingMs)} more`
        : `unknown: its owner has been silent for ${inWords(-record.leaseRemainingMs)} past its lease`
    case 'completed':
      return 'it succeeded; retries get its answer'
    case 'failed':
      return record.uncertain
        ? 'unknown: it failed, and may have had its effect'
        : 'it failed without effect; the key is free'
  }
}

/** Bytes as text, and only where they are asked for. */
function asJson(record: IdempotencyRecord, showsBody: boolean): object {
  if (record.state !== 'completed' || record.answer === null) return record
  const { body, ...head } = record.answer
  const shown = showsBody && body !== null ? { bodyBase64: Buffer.from(body).toString('base64') } : {}
  return { ...record, answer: { ...head, bodyBytes: body?.byteLength ?? null, ...shown } }
}
