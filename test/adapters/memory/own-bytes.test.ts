import type { Answer, Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'

const TERMS = { scope: 'acme', fingerprint: 'f', leaseMs: 1_000, retentionMs: 10_000 }
const OWN = { ...TERMS, token: 'owner', attempt: 1, uncertain: false }

test('a caller may reuse the bytes and the headers that it handed in', async () => {
  const store = new MemoryStore()
  const headers: [string, string][] = [['x-first', '1']]
  const body = Buffer.from('answer')
  await completed(store, { status: 201, statusMessage: '', headers, body })
  body.fill(0)
  headers.push(['x-second', '2'])
  expect(await replayed(store)).toMatchObject({ headers: [['x-first', '1']], body: Buffer.from('answer') })
})

test('a reader may change the answer that it was given', async () => {
  const store = new MemoryStore()
  await completed(store, { status: 201, statusMessage: '', headers: [['x-first', '1']], body: Buffer.from('answer') })
  const given = await replayed(store)
  given.body?.fill(0)
  ;(given.headers as [string, string][]).push(['x-reader', '1'])
  expect(await replayed(store)).toMatchObject({ headers: [['x-first', '1']], body: Buffer.from('answer') })
})

test('the bytes of a large answer are those of the store for each reader, and not those that were handed in', async () => {
  const store = new MemoryStore()
  const body = Buffer.alloc(1_000_000, 'a')
  await completed(store, { status: 201, statusMessage: '', headers: [], body })
  body.fill(0)
  const given = await replayed(store)
  expect(given.body?.every((byte) => byte === 97)).toBe(true)
  expect((await replayed(store)).body === given.body).toBe(true)
})

test('whoever inspects a record may change its answer', async () => {
  const store = new MemoryStore()
  await completed(store, { status: 201, statusMessage: '', headers: [], body: Buffer.alloc(1_000_000, 'a') })
  expect(await store.inspect('key')).toMatchObject({ state: 'completed' })
  const record = (await store.inspect('key')) as { readonly answer: Answer }
  record.answer.body?.fill(0)
  expect((await replayed(store)).body?.every((byte) => byte === 97)).toBe(true)
})

test('an answer that cannot be kept leaves the claim as it was', async () => {
  const store = new MemoryStore()
  const broken = completed(store, { status: 201, statusMessage: 7 as never, headers: [], body: null })
  await expect(broken).rejects.toThrow()
  expect(await store.inspect('key')).toMatchObject({ state: 'in-flight', attempt: 1 })
})

async function completed(store: Store, answer: Answer): Promise<void> {
  await store.begin('key', { ...TERMS, token: 'owner', unknownOutcome: 'rerun' })
  await store.complete('key', { ...OWN, answer })
}

async function replayed(store: Store): Promise<Answer> {
  const begun = await store.begin('key', { ...TERMS, token: 'reader', unknownOutcome: 'rerun' })
  if (begun.acquired || begun.record.state !== 'completed' || begun.record.answer === null) {
    throw new Error('There is no answer.')
  }
  return begun.record.answer
}

test.each([
  [
    'two lines of one name',
    [
      ['x', '1'],
      ['X', '2'],
      ['x', ''],
    ],
  ],
  ['none', []],
  [
    'a line feed in a value',
    [
      ['x', 'one\ntwo'],
      ['y', '3'],
    ],
  ],
  ['a line feed in a name', [['x\ny', 'one']]],
  ['an empty name and value', [['', '']]],
  ['a bracket at its begin', [['[x', '[1]']]],
] as const)('headers are kept as they are: %s', async (_what, headers) => {
  const store = new MemoryStore()
  await completed(store, { status: 201, statusMessage: '', headers, body: null })
  expect((await replayed(store)).headers).toEqual(headers)
})

test('answers of many forms are kept apart: status, message, names, content types', async () => {
  const store = new MemoryStore()
  const forms: Answer[] = []
  for (const status of [200, 201]) {
    for (const statusMessage of ['', 'Made', '3:x']) {
      for (const [name, value] of [
        ['Content-Type', 'text/plain'],
        ['Content-Type', 'text/html'],
        ['content-type', 'text/plain'],
        ['location', 'text/plain'],
        ['location2', 'text/plain'],
        ['content-type', '1:x'],
      ] as const) {
        forms.push({ status, statusMessage, headers: [[name, value]], body: null })
      }
    }
  }
  // More than the store keeps once for all records.
  for (let i = 0; i < 1_000; i++)
    forms.push({ status: 200, statusMessage: '', headers: [[`x-${i}`, `${i}`]], body: null })
  for (const [i, answer] of forms.entries()) {
    await store.begin(`${i}`, { ...TERMS, token: 'owner', unknownOutcome: 'rerun' })
    await store.complete(`${i}`, { ...OWN, answer })
  }
  for (const [i, answer] of forms.entries()) expect(await store.inspect(`${i}`)).toMatchObject({ answer })
})

test.each(['a"b', '"quoted"', 'two\nlines', '"two\nlines', ''])(
  "a token of a caller's own may be any text: %j",
  async (token) => {
    const store = new MemoryStore()
    const fingerprint = `f\n${token}`
    await store.begin('key', { ...TERMS, token, fingerprint, unknownOutcome: 'rerun' })
    expect(await store.renew('key', { ...OWN, token, fingerprint })).toEqual({ ok: true })
    expect(await store.renew('key', { ...OWN, token: `${token} `, fingerprint })).toMatchObject({ ok: false })
    const answer: Answer = { status: 200, statusMessage: '', headers: [['x', token]], body: Buffer.from(token) }
    await store.complete('key', { ...OWN, token, fingerprint, answer })
    expect(await store.inspect('key')).toEqual({ state: 'completed', fingerprint, attempt: 1, answer })
  },
)
