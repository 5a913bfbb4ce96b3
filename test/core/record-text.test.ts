import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { encodeRecord, type machine } from 'once-per-key/core'
import { describe, expect, test } from 'vitest'
import { parseRecord } from '../../src/core/store/record-text.js'
import { RECORDS } from '../support/machine-records.js'

type StoredRecord = machine.StoredRecord

// The texts of format 1: frozen. A record that was written before a deployment must be read after it, and the other way round.
const GOLDEN: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(new URL('golden/record-texts-v1.json', import.meta.url), 'utf8'),
)

const STEPS = [
  { label: 'charge', state: 'done', order: 2, result: Uint8Array.of(0, 255, 128) },
  { label: 'ship \u2603', state: 'begun', order: 3, result: null },
  { label: 'mail', state: 'undone', order: 4, result: null },
] as const

const ALL: Readonly<Record<string, StoredRecord>> = {
  ...RECORDS,
  'in-flight, with steps': { ...RECORDS['in-flight, lease live'], steps: STEPS },
  'failed, uncertain, with steps, to be rerun': { ...RECORDS['failed, uncertain'], steps: STEPS, rerun: true },
  'completed, with an odd head': {
    ...RECORDS.completed,
    answer: {
      status: 203,
      statusMessage: 'Gr\u00f6\u00dfe',
      headers: [
        ['Link', '</a>; rel="next"'],
        ['Link', 'caf\u00e9 \u20ac \ud83d\udcb6 \ud800 \u0000'],
      ],
      body: new Uint8Array(0),
    },
  },
}

test('there is a golden text of each kind of record', () => {
  expect(Object.keys(GOLDEN)).toEqual(Object.keys(ALL))
})

describe.each(Object.entries(ALL))('a record of format 1: %s', (name, record) => {
  test('is encoded as this text, and read from it unchanged', () => {
    expect(encodeRecord(record)).toBe(GOLDEN[name])
    expect(structuredClone(parseRecord(GOLDEN[name]))).toEqual(structuredClone(record))
  })

  test('is ASCII, so that a column of any encoding keeps it', () => {
    expect(encodeRecord(record)).toMatch(/^[\x20-\x7e]*$/)
  })

  test('is read as a record, as it is', () => {
    expect(parseRecord(record)).toBe(record)
  })
})

test('any bytes, and a part of a larger buffer, survive', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 50 }), fc.nat(10), (bytes, from) => {
      const body = bytes.subarray(Math.min(from, bytes.length))
      const record: StoredRecord = { ...RECORDS.completed, answer: { ...RECORDS.completed.answer, body } }
      const { answer } = parseRecord(encodeRecord(record)) as typeof record & { state: 'completed' }
      expect(Buffer.from(answer.body as Uint8Array).equals(body)).toBe(true)
    }),
  )
})

const SECRET = 'DE89-secret'
const WHOLE: StoredRecord = {
  ...RECORDS.completed,
  token: SECRET,
  answer: { status: 200, statusMessage: SECRET, headers: [['X', SECRET]], body: Buffer.from(SECRET) },
}

const unreadable = (message: RegExp) =>
  expect.objectContaining({ name: 'CasStoreError', code: 'record_unreadable', message: expect.stringMatching(message) })

describe('a text that cannot be read is a clear error', () => {
  const text = encodeRecord(WHOLE)

  test.each([
    ['cut off', text.slice(0, -1), /not a text of encodeRecord/],
    ['empty', '', /not a text of encodeRecord/],
    ['of a later format', text.replace('"format":1', '"format":2'), /a later version of the library encoded it/],
    ['without a format', text.replace('"format":1,', ''), /not a text of encodeRecord/],
    ['JSON of another kind', '[1]', /not a text of encodeRecord/],
    ['a string in JSON', JSON.stringify(text), /not a text of encodeRecord/],
    ['with a body that is not base64', text.replace(/"body":"./, '"body":"*'), /its answer is damaged/],
    ['with a body that was cut off', text.replace(/"body":"./, '"body":"'), /its answer is damaged/],
    ['of an unknown state', text.replace('completed', '__proto__'), /its state is damaged/],
  ])('%s', (_, damaged, message) => {
    expect(() => parseRecord(damaged)).toThrow(unreadable(message))
  })

  test('whose message, wherever the text is damaged, shows nothing of the record', () => {
    const messages = Array.from(text, (_, at) => {
      try {
        parseRecord(`${text.slice(0, at)}?${text.slice(at + 1)}`)
      } catch (error) {
        return String((error as Error).message)
      }
      return ''
    })
    expect(messages.filter(Boolean).length).toBeGreaterThan(text.length / 3)
    expect(messages.filter((message) => /secret|DE89/.test(message))).toEqual([])
  })
})

describe('a record with a damaged member is named by it', () => {
  const flight = ALL['in-flight, with steps']
  const failed = ALL['failed, uncertain, with steps, to be rerun']

  test.each<[string, object | null | undefined, object]>([
    ['state', RECORDS.completed, { state: 'done' }],
    ['token', RECORDS.completed, { token: null }],
    ['attempt', flight, { attempt: '3' }],
    ['attempt', flight, { attempt: -1 }],
    ['expiresAt', flight, { expiresAt: undefined }],
    ['expiresAt', flight, { expiresAt: new Date() }],
    ['leaseUntil', flight, { leaseUntil: Number.NaN }],
    ['fingerprint', flight, { fingerprint: null }],
    ['uncertain', flight, { uncertain: 0 }],
    ['steps', flight, { steps: {} }],
    ['steps', flight, { steps: [{ ...STEPS[0], result: 'AP+A' }] }],
    ['steps', flight, { steps: [{ ...STEPS[0], order: undefined }] }],
    ['steps', flight, { steps: [{ ...STEPS[0], state: 'over' }] }],
    ['steps', flight, { steps: [{ ...STEPS[0], label: 1 }] }],
    ['steps', flight, { steps: [null] }],
    ['fingerprint', failed, { fingerprint: null }],
    ['fingerprint', RECORDS['failed, certain'], { fingerprint: 'f' }],
    ['rerun', failed, { rerun: false }],
    ['answer', WHOLE, { answer: null }],
    ['answer', WHOLE, { answer: { ...RECORDS.completed.answer, status: '200' } }],
    ['answer', WHOLE, { answer: { ...RECORDS.completed.answer, statusMessage: null } }],
    ['answer', WHOLE, { answer: { ...RECORDS.completed.answer, headers: [['X']] } }],
    ['answer', WHOLE, { answer: { ...RECORDS.completed.answer, headers: { X: 'y' } } }],
    ['answer', WHOLE, { answer: { ...RECORDS.completed.answer, body: 'text' } }],
  ])('%s', (member, record, changes) => {
    expect(() => parseRecord({ ...record, ...changes })).toThrow(
      unreadable(new RegExp(`: its ${member} is damaged\\.`)),
    )
  })

  test.each([[7], [true], [undefined], [new Uint8Array(3)]])('state, of what is no record at all: %s', (kept) => {
    expect(() => parseRecord(kept)).toThrow(unreadable(/its state is damaged/))
  })
})
