import type { Answer, machine } from '../../src/core/index.js'

type StoredRecord = machine.StoredRecord

/** What many records have in common: it is kept once for all of them. */
export class Form {
  readonly state: StoredRecord['state']
  readonly uncertain: boolean
  /** The record has a fingerprint. */
  readonly isBound: boolean
  readonly status: number
  readonly statusMessage: string
  /** The names of the headers, and the values that are common too; `null`: each record has its own. */
  readonly #headers: readonly (readonly [name: string, value: string | null])[]
  /** What it adds to the size of its record: nothing if it is shared. */
  readonly bytes: number

  constructor(
    { state, uncertain, isBound }: Pick<Form, 'state' | 'uncertain' | 'isBound'>,
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
    this.bytes = bytes
  }

  headersWith(values: readonly string[]): [name: string, value: string][] {
    let next = 0
    return this.#headers.map(([name, value]) => [name, value ?? (values[next++] as string)])
  }
}

const NO_HEAD = { status: 0, statusMessage: '' }

const IN_FLIGHT = new Form({ state: 'in-flight', uncertain: false, isBound: true })
const IN_FLIGHT_UNCERTAIN = new Form({ state: 'in-flight', uncertain: true, isBound: true })
const FAILED = new Form({ state: 'failed', uncertain: false, isBound: false })
const FAILED_UNCERTAIN = new Form({ state: 'failed', uncertain: true, isBound: true })
const COMPLETED = { state: 'completed', uncertain: false, isBound: true } as const

/** An application has a handful; what is beyond, or long, is kept with its record. */
const MOST_FORMS = 500
const LONGEST_FORM = 500
/** An estimate of what V8 needs for one. */
const FORM_OVERHEAD_BYTES = 300

/** The forms of a store's records. */
export class Forms {
  readonly #byHead = new Map<string, Form>()

  without({ state, uncertain }: Exclude<StoredRecord, { state: 'completed' }>): Form {
    if (state === 'in-flight') return uncertain ? IN_FLIGHT_UNCERTAIN : IN_FLIGHT
    return uncertain ? FAILED_UNCERTAIN : FAILED
  }

  /** Adds to `own` the values that the record has to keep itself. */
  of({ status, statusMessage, headers }: Answer, own: string[]): Form {
    let head = `${status} ${measured(statusMessage)}`
    for (const [name, value] of headers) {
      head += measured(name)
      if (isCommon(name)) head += measured(value)
      else own.push(aText(value))
    }
    return this.#byHead.get(head) ?? this.#add(head, { status, statusMessage, headers })
  }

  #add(head: string, answer: Pick<Answer, 'status' | 'statusMessage' | 'headers'>): Form {
    const isShared = head.length <= LONGEST_FORM && this.#byHead.size < MOST_FORMS
    const headers = answer.headers.map(([name, value]) => [name, isCommon(name) ? value : null] as const)
    const form = new Form(COMPLETED, answer, headers, isShared ? 0 : head.length + FORM_OVERHEAD_BYTES)
    if (isShared) this.#byHead.set(head, form)
    return form
  }

  clear(): void {
    this.#byHead.clear()
  }
}

/** The same for all answers of a kind. */
function isCommon(name: string): boolean {
  return name.length === 12 && name.toLowerCase() === 'content-type'
}

/** With its length, so that no two heads are the same text. */
function measured(text: string): string {
  return `${aText(text).length}:${text}`
}

function aText(value: string): string {
  if (typeof value !== 'string') throw notTextAndBytes()
  return value
}

/** A caller without types may pass anything. */
export function notTextAndBytes(): TypeError {
  return new TypeError('The answer is not made of text and bytes.')
}
