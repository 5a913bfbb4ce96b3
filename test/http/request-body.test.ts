import {
  bodyField,
  createRequestEngine,
  type IdempotencyOptions,
  parseComparableBody,
  withoutBody,
} from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { engineOnTrial, outcomeOf } from '../support/engine-on-trial.js'

const bytesOf = (text: string) => new TextEncoder().encode(text)
const typed = (type: string, ...more: string[]) => (type === '' ? more : ['Content-Type', type, ...more])

describe('comparableBody', () => {
  test.each<{ type: string; text: string; body: unknown }>([
    { type: 'application/json', text: '{"a":[1,null]}', body: { a: [1, null] } },
    { type: 'application/json; charset=utf-8', text: '\ufeff{"a":1}', body: { a: 1 } },
    { type: 'application/merge-patch+json', text: '[1]', body: [1] },
    { type: 'application/json', text: '', body: undefined },
    { type: 'application/json', text: 'null', body: bytesOf('null') },
    { type: 'text/plain', text: '{"a":1}', body: bytesOf('{"a":1}') },
    { type: '', text: '{"a":1}', body: bytesOf('{"a":1}') },
    { type: '', text: '', body: undefined },
    { type: 'application/octet-stream', text: '', body: undefined },
  ])('$type: $text', ({ type, text, body }) => {
    const isEmpty = text === '' && { bodyIsEmpty: true }
    expect(parseComparableBody(bytesOf(text), typed(type))).toEqual({ body, bodyWasRead: true, ...isEmpty })
  })

  test('a form by its fields; one that comes several times is a list', () => {
    const { body } = parseComparableBody(
      bytesOf('a=1&b=x+y&a=2&__proto__=3&a=4'),
      typed('application/x-www-form-urlencoded'),
    )
    expect(Object.entries(body as object)).toEqual([
      ['a', ['1', '2', '4']],
      ['b', 'x y'],
      ['__proto__', '3'],
    ])
  })

  test('an announced body of bytes is one, also where it has none', () => {
    const headers = typed('application/octet-stream', 'Content-Length', '0')
    expect(parseComparableBody(bytesOf(''), headers).body).toEqual(bytesOf(''))
  })

  test('JSON that is none is its bytes, and said to be malformed', () => {
    const body = bytesOf('{"a":')
    expect(parseComparableBody(body, typed('application/json'))).toEqual({
      body,
      bodyWasRead: true,
      bodyFault: 'malformed',
    })
  })
})

describe('bytes that are no UTF-8 count as they are', () => {
  const FORM = 'application/x-www-form-urlencoded'
  const latin1 = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0))

  test.each([
    { type: 'application/json', text: '{"name":"\xff"}' },
    { type: FORM, text: 'name=\xff' },
    { type: FORM, text: 'name=%FF' },
    { type: FORM, text: 'name=%C3&%A4=1' },
  ])('$type: $text', ({ type, text }) => {
    const bytes = latin1(text)
    expect(parseComparableBody(bytes, typed(type))).toEqual({ body: bytes, bodyWasRead: true, bodyFault: 'malformed' })
  })

  test('and escaped UTF-8, or a percent sign alone, is text', () => {
    const { body } = parseComparableBody(bytesOf('a=%C3%A4&b=100%&c=%EF%BF%BD'), typed(FORM))
    expect(body).toEqual({ a: 'ä', b: '100%', c: '\ufffd' })
  })
})

describe('a form', () => {
  const typedForm = typed('application/x-www-form-urlencoded')

  test('has at most 1,000 fields', () => {
    const atLimit = Array.from({ length: 1_000 }, (_, i) => `f${i % 7}=1`).join('&')
    expect(parseComparableBody(bytesOf(atLimit), typedForm).bodyFault).toBeUndefined()
    expect(parseComparableBody(bytesOf(`${atLimit}&a`), typedForm)).toEqual({
      body: undefined,
      bodyWasRead: true,
      bodyFault: 'too_many_fields',
    })
  })

  test('with more is 413 body_too_large, also where the key may be in it; a fingerprint of one’s own is asked', async () => {
    const tooMany = { body: undefined, bodyWasRead: true, bodyFault: 'too_many_fields' } as const
    const { send } = engineOnTrial()
    expect(await send(tooMany)).toMatchObject({ action: 'reject', problem: { code: 'body_too_large', status: 413 } })
    const legacyKey = bodyField('idempotencyKey', { deprecatedSince: new Date(0) })
    const headers: [string, string][] = [['Content-Type', 'application/x-www-form-urlencoded']]
    const inForm = engineOnTrial({ legacyKey }).send({ ...tooMany, headers, key: null })
    expect(await inForm).toMatchObject({
      problem: { code: 'body_too_large', detail: expect.stringContaining('1,000') },
    })
    expect(outcomeOf(await engineOnTrial({ fingerprint: () => 1 }).send(tooMany))).toBe('execute')
  })
})

describe('readsBody', () => {
  const legacyKey = bodyField('idempotencyKey', { deprecatedSince: new Date(0) })
  const key = ['idempotency-key', 'k']
  const json = ['content-type', 'application/json']

  test.each<{ what: string; reads: boolean; method?: string; rawHeaders: string[]; options?: object }>([
    { what: 'a key', reads: true, rawHeaders: key },
    { what: 'no key', reads: false, rawHeaders: json },
    { what: 'a key, but a method that is not covered', reads: false, method: 'GET', rawHeaders: key },
    { what: 'a key under another name', reads: true, rawHeaders: ['x-key', 'k'], options: { header: 'X-Key' } },
    {
      what: 'a fingerprint that needs no body',
      reads: false,
      rawHeaders: key,
      options: { fingerprint: withoutBody(() => 1) },
    },
    { what: 'a fingerprint', reads: true, rawHeaders: key, options: { fingerprint: () => 1 } },
    { what: 'a body that may have the key', reads: true, rawHeaders: json, options: { legacyKey } },
    {
      what: 'a body that cannot have it',
      reads: false,
      rawHeaders: ['content-type', 'image/png'],
      options: { legacyKey },
    },
  ])('$what: $reads', ({ reads, method = 'POST', rawHeaders, options }) => {
    const given: IdempotencyOptions = { store: new MemoryStore(), scope: () => 'acme', ...options }
    expect(createRequestEngine(given).readsBody({ method, rawHeaders })).toBe(reads)
  })
})

describe('a body that is too large', () => {
  const tooLarge = { body: undefined, bodyFault: 'too_large' } as const

  test('is 413 body_too_large where it counts, with an event', async () => {
    const { send, events } = engineOnTrial()
    expect(await send(tooLarge)).toMatchObject({ action: 'reject', problem: { code: 'body_too_large', status: 413 } })
    expect(events).toEqual([{ type: 'rejected', code: 'body_too_large' }])
  })

  test('is let through where `skip` says so, or the fingerprint needs no body', async () => {
    expect(outcomeOf(await engineOnTrial({ skip: () => true }).send(tooLarge))).toBe('bypass')
    expect(outcomeOf(await engineOnTrial({ fingerprint: withoutBody(() => 1) }).send(tooLarge))).toBe('execute')
    expect(outcomeOf(await engineOnTrial({ fingerprint: () => 1 }).send(tooLarge))).toBe('body_too_large')
  })

  test('is refused, too, where the key may be in it', async () => {
    const headers = [['Content-Type', 'application/json']] as const
    const { send } = engineOnTrial({ legacyKey: bodyField('key', { deprecatedSince: new Date(0) }) })
    expect(outcomeOf(await send({ ...tooLarge, headers, key: null }))).toBe('body_too_large')
  })
})

test('JSON that is malformed is 400 key_invalid where the key may be in it, and body_malformed elsewhere', async () => {
  const malformed = { body: bytesOf('{"key":"k"'), bodyFault: 'malformed' } as const
  const headers = [['Content-Type', 'application/json']] as const
  const { send } = engineOnTrial({ legacyKey: bodyField('key', { deprecatedSince: new Date(0) }) })
  expect(outcomeOf(await send({ ...malformed, headers, key: null }))).toBe('key_invalid')
  expect(outcomeOf(await engineOnTrial().send({ ...malformed, headers }))).toBe('body_malformed')
})
