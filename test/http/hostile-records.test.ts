import { type Answer, machine } from 'once-per-key/core'
import { describe, expect, test } from 'vitest'
import { BINDINGS } from '../support/bindings.js'
import { mapStore } from '../support/map-store.js'
import { request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

const HOSTILE: readonly [name: string, change: Partial<Answer>][] = [
  ['a status of 100', { status: 100 }],
  ['a status of 199', { status: 199 }],
  ['a status of 600', { status: 600 }],
  ['a status of 0', { status: 0 }],
  ['a status that is no integer', { status: 200.5 }],
  ['Transfer-Encoding', { headers: [['Transfer-Encoding', 'chunked']] }],
  ['Connection', { headers: [['connection', 'upgrade']] }],
  ['Upgrade', { headers: [['Upgrade', 'h2c']] }],
  ['a length that is too short', { headers: [['Content-Length', '3']] }],
  ['a length that is too long', { headers: [['content-length', '4000']] }],
  [
    'two lengths',
    {
      headers: [
        ['Content-Length', '4'],
        ['Content-Length', '5'],
      ],
    },
  ],
  ['a header that begins another', { headers: [['X-A', 'a\r\nX-Planted: 1']] }],
  ['a header with a character that is no byte', { headers: [['X-A', 'ł']] }],
  ['a reason that begins a header', { statusMessage: 'OK\r\nX-Planted: 1' }],
]

// Whoever can write to the store, or a bit that flips in it, decided what was sent: a response of status 100, or one that is
// framed twice, which a proxy reads as two.
describe.each(BINDINGS)('$name', (binding) => {
  test.each(HOSTILE)('a stored answer with %s is a store failure: nothing of it is sent', async (_name, change) => {
    const records = new Map<string, machine.StoredRecord>()
    const store = mapStore(() => 1, machine, records)
    const serving = await serve(binding, (_req, res) => res.end('paid'), { options: { store } })
    expect((await request(serving.port, { key: 'k' })).body.toString()).toBe('paid')

    for (const [key, record] of records) {
      if (record.state === 'completed') records.set(key, { ...record, answer: { ...record.answer, ...change } })
    }
    const retry = await request(serving.port, { key: 'k' })
    expect(retry.status).toBe(503)
    expect(retry.json()).toMatchObject({ code: 'store_unavailable' })
    expect(retry.header('Retry-After')).toBe('1')
    expect(retry.lines('X-Planted')).toEqual([])
    expect(retry.body.toString()).not.toContain('paid')
    expect(serving.events).toContainEqual(expect.objectContaining({ type: 'store_failed', command: 'begin' }))
    expect(serving.runs()).toBe(1)
  })
})

test('a handler’s success that no retry could be sent is not kept: a retry is told so, and runs nothing', async () => {
  const [binding] = BINDINGS as [(typeof BINDINGS)[number]]
  const options = { isSuccess: () => true }
  const serving = await serve(binding, (_req, res) => res.writeHead(777).end('paid'), { options })
  expect((await request(serving.port, { key: 'k' })).status).toBe(777)
  expect(serving.events).toContainEqual(expect.objectContaining({ type: 'completed', answerKept: false }))
  const retry = await request(serving.port, { key: 'k' })
  expect([retry.status, retry.json()]).toMatchObject([409, { code: 'answer_not_kept' }])
  expect(serving.runs()).toBe(1)
})
