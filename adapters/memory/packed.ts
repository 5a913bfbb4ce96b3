import { Buffer } from 'node:buffer'
import type { machine, StoredStep } from '../../src/core/index.js'
import { notTextAndBytesError, type RecordTemplate, type TemplateCache } from './forms.js'

type StoredRecord = machine.StoredRecord

/** An estimate of what V8 and lru-cache need for a record besides its text and bytes. */
const RECORD_OVERHEAD_BYTES = 350

/** Above this size a Buffer is better; below, its overhead of some 200 bytes and garbage collection costs more. */
const MOST_BYTES_AS_TEXT = 4_096

/** What an entry keeps of a record. */
export interface PackedRecord {
  readonly form: RecordTemplate
  readonly text: string
  /** An answer's body, a small one as Latin-1 text; of a record that is not completed, what few have. */
  readonly content: string | Buffer | StepsContent | null
}

/** The steps of a record, and an operator's mark. */
export interface StepsContent {
  readonly steps: readonly StoredStep[]
  readonly rerun: boolean
  /** In bytes, as that of a body. */
  readonly length: number
}

/** An estimate of what V8 needs for a step besides its label and its bytes. */
const STEP_OVERHEAD_BYTES = 200

export function computeSize(key: string, { form, text, content }: PackedRecord): number {
  return RECORD_OVERHEAD_BYTES + key.length + form.bytes + text.length + (content === null ? 0 : content.length)
}

/** The record as an entry keeps it. Throws, and has changed nothing, if its answer is not made of text and bytes. */
export function packRecord(record: StoredRecord, forms: TemplateCache): PackedRecord {
  const { token, fingerprint } = record
  if (record.state !== 'completed') {
    const parts = fingerprint === null ? [token] : [token, fingerprint]
    return { form: forms.getTemplateWithoutAnswer(record), text: joinParts(parts), content: toStepsContent(record) }
  }
  const { answer } = record
  const form = forms.getTemplate(answer)
  const text = joinParts(form.buildParts(token, record.fingerprint, answer))
  return { form, text, content: packBody(answer.body) }
}

function toStepsContent(record: Exclude<StoredRecord, { state: 'completed' }>): StepsContent | null {
  const rerun = record.state === 'failed' && record.rerun === true
  if (record.steps === undefined && !rerun) return null
  const steps = (record.steps ?? []).map((step) => ({ ...step, result: step.result && Buffer.from(step.result) }))
  const length = steps.reduce((sum, { label, result }) => {
    return sum + STEP_OVERHEAD_BYTES + label.length + (result?.byteLength ?? 0)
  }, 0)
  return { steps, rerun, length }
}

/**
 * One flat string, one line for each part: joined, because V8 keeps a concatenated string as its pieces, at several times
 * the bytes. If a part contains a line feed, each is a JSON string: then the text begins with a quotation mark.
 */
function joinParts(parts: readonly string[]): string {
  const isPlain = !parts[0]?.startsWith('"') && !parts.some(hasLineFeed)
  return (isPlain ? parts : parts.map((part) => JSON.stringify(part))).join('\n')
}

function hasLineFeed(part: string): boolean {
  return part.includes('\n')
}

export function getPart(text: string, index: number): string {
  let from = 0
  for (let i = 0; i < index; i++) from = text.indexOf('\n', from) + 1
  const to = text.indexOf('\n', from)
  return parsePart(text, text.slice(from, to === -1 ? undefined : to))
}

export function splitParts(text: string): string[] {
  const parts = text.split('\n')
  return text.startsWith('"') ? parts.map((part) => parsePart(text, part)) : parts
}

function parsePart(text: string, part: string): string {
  return text.startsWith('"') ? JSON.parse(part) : part
}

/** A copy, because callers may modify theirs. */
function packBody(body: Uint8Array | null): string | Buffer | null {
  if (body === null) return null
  if (!(body instanceof Uint8Array)) throw notTextAndBytesError()
  const { buffer, byteOffset, byteLength } = body
  if (byteLength <= MOST_BYTES_AS_TEXT) {
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(buffer, byteOffset, byteLength)
    return bytes.toString('latin1')
  }
  // Not from Buffer's pool: a small slice would keep the whole pool alive.
  return Buffer.from(new Uint8Array(body).buffer)
}
