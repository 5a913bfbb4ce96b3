import type { Answer, machine } from '../../src/core/index.js'

type StoredRecord = machine.StoredRecord

/** What many records have in common: it is kept once for all of them. */
export class RecordTemplate {
  readonly state: StoredRecord['state']
  readonly uncertain: boolean
  /** The record has a fingerprint. */
  readonly isBound: boolean
  readonly status: number
  readonly statusMessage: string
  /** The names of the headers, and the values that are common too; `null`: each record has its own. */
  readonly #headers: readonly (readonly [name: string, value: string | null])[]
  readonly #ownValues: number
  /** What it adds to the size of its record: nothing if it is shared. */
  readonly bytes: number

  constructor(
    { state, uncertain, isBound }: Pick<RecordTemplate, 'state' | 'uncertain' | 'isBound'>,
    { status, statusMessage }: Pick<Answer, 'status' | 'statusMessage'> = NO_HEAD,
    headers: readonly (readonly [name: string, value: string | null])[] = [],
    bytes = 0,
  ) {
    this.state = state
    this.uncertain = uncertain
    this.isBound = isBound
    this.status = status
    this.statusMessage = statusMessage
    this.#headers = headers
    this.#ownValues = headers.filter(([, value]) => value === null).length
    this.bytes = bytes
  }

  /** `values`: from this index on, those of the record. */
  buildHeaders(values: readonly string[], index: number): [name: string, value: string][] {
    let next = index
    return this.#headers.map(([name, value]) => [name, value ?? (values[next++] as string)])
  }

  fits({ status, statusMessage, headers }: Answer): boolean {
    const own = this.#headers
    if (status !== this.status || statusMessage !== this.statusMessage || headers.length !== own.length) return false
    for (let i = 0; i < own.length; i++) {
      const [name, common] = own[i] as (typeof own)[number]
      const [itsName, value] = headers[i] as Answer['headers'][number]
      if (itsName !== name || (common !== null && value !== common)) return false
    }
    return true
  }

  /** The values that a record has to keep itself, behind two parts of its own. */
  buildParts(token: string, fingerprint: string, { headers }: Answer): string[] {
    const parts = new Array<string>(2 + this.#ownValues)
    parts[0] = token
    parts[1] = fingerprint
    let next = 2
    for (let i = 0; i < headers.length; i++)
      if (this.#headers[i]?.[1] === null) parts[next++] = requireText(headers[i]?.[1])
    return parts
  }
}

const NO_HEAD = { status: 0, statusMessage: '' }

const IN_FLIGHT = new RecordTemplate({ state: 'in-flight', uncertain: false, isBound: true })
const IN_FLIGHT_UNCERTAIN = new RecordTemplate({ state: 'in-flight', uncertain: true, isBound: true })
const FAILED = new RecordTemplate({ state: 'failed', uncertain: false, isBound: false })
const FAILED_UNCERTAIN = new RecordTemplate({ state: 'failed', uncertain: true, isBound: true })
const COMPLETED = { state: 'completed', uncertain: false, isBound: true } as const

/** An application has a handful, which are looked through; what is beyond, or long, is kept with its record. */
const MOST_FORMS = 100
const LONGEST_FORM = 500
/** An estimate of what V8 needs for one. */
const FORM_OVERHEAD_BYTES = 300

export class TemplateCache {
  #shared: RecordTemplate[] = []

  getTemplateWithoutAnswer({ state, uncertain }: Exclude<StoredRecord, { state: 'completed' }>): RecordTemplate {
    if (state === 'in-flight') return uncertain ? IN_FLIGHT_UNCERTAIN : IN_FLIGHT
    return uncertain ? FAILED_UNCERTAIN : FAILED
  }

  getTemplate(answer: Answer): RecordTemplate {
    const known = this.#shared
    for (let i = 0; i < known.length; i++) if (known[i]?.fits(answer)) return known[i] as RecordTemplate
    return this.#add(answer)
  }

  #add(answer: Answer): RecordTemplate {
    const length = computeTemplateLength(answer)
    const isShared = length <= LONGEST_FORM && this.#shared.length < MOST_FORMS
    const headers = answer.headers.map(([name, value]) => [name, isCommon(name) ? value : null] as const)
    const form = new RecordTemplate(COMPLETED, answer, headers, isShared ? 0 : length + FORM_OVERHEAD_BYTES)
    if (isShared) this.#shared.push(form)
    return form
  }

  clear(): void {
    this.#shared = []
  }
}

/** The same for all answers of a kind. */
function isCommon(name: string): boolean {
  return name.length === 12 && name.toLowerCase() === 'content-type'
}

/** Throws if it is not made of text. */
function computeTemplateLength({ statusMessage, headers }: Answer): number {
  let length = requireText(statusMessage).length
  for (const [name, value] of headers)
    length += requireText(name).length + (isCommon(name) ? requireText(value).length : 0)
  return length
}

function requireText(value: unknown): string {
  if (typeof value !== 'string') throw notTextAndBytesError()
  return value
}

/** A caller without types may pass anything. */
export function notTextAndBytesError(): TypeError {
  return new TypeError('The answer is not made of text and bytes.')
}
