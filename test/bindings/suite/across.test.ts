import { MemoryStore } from 'once-per-key/memory'
import { beforeAll, describe, expect, test } from 'vitest'
import { request } from '../../support/raw-client.js'
import type { Framework, Started } from './framework.js'
import { FRAMEWORKS } from './frameworks/index.js'
import { REPLY_STYLES } from './replies.js'
import { essenceOf } from './same-reply.js'
import { rawOf, type Sent } from './serve.js'

/** Requests that have one fingerprint everywhere: JSON, bytes, and targets in URL normal form. */
const REQUESTS: readonly { readonly what: string; readonly sent: Sent; readonly again?: Sent }[] = [
  { what: 'JSON', sent: { json: { amount: 100, to: { name: 'Zoë', bank: [1, 2] } } } },
  {
    what: 'JSON in another order, with other white space and another charset',
    sent: { json: { amount: 100, to: 'Zoë' } },
    again: {
      bytes: ' {"to":"Zo\\u00eb" , "amount":1e2}',
      headers: { 'Content-Type': 'application/json; charset=utf-8' },
    },
  },
  { what: 'JSON with members that are odd', sent: { json: JSON.parse('{"__proto__":{"a":1},"":0,"1":null,"e":[]}') } },
  { what: 'an empty object', sent: { json: {} } },
  { what: 'no body', sent: { bytes: '', headers: {} } },
  {
    what: 'bytes',
    sent: { bytes: new Uint8Array([0, 255, 254, 13, 10]), headers: { 'Content-Type': 'application/octet-stream' } },
  },
  {
    what: 'a form of plain fields',
    sent: { bytes: 'to=Zo%C3%AB&amount=1+0&a=1&a=2', headers: { 'Content-Type': 'application/x-www-form-urlencoded' } },
  },
  { what: 'a query', sent: { path: '/payouts?b=2&a=1&a=%20%7e' } },
  { what: 'a query that is empty', sent: { path: '/payouts?' } },
  { what: 'a path with escapes', sent: { path: '/payouts/a%2Fb%20c/%C3%AB' } },
  { what: 'a key beyond ASCII', sent: { headers: { 'Idempotency-Key': '\u00c3\u00ab' }, key: null } },
  { what: 'a key in quotes', sent: { key: '"order 17"' } },
]

const store = new MemoryStore()
const started = new Map<Framework, Started>()
/** Where the answers come from, so that a replay cannot be a run. */
let runs = 0
let reply = () => ({ text: 'paid' }) as ReturnType<(typeof REPLY_STYLES)[number]['reply']>

beforeAll(async () => {
  for (const framework of FRAMEWORKS) {
    const app = {
      isProtected: true,
      options: { store, scope: () => 'acme' },
      handler() {
        runs++
        return reply()
      },
    }
    started.set(framework, await framework.start(app))
  }
  return async () => {
    for (const { close } of started.values()) await close()
  }
})

const send = (framework: Framework, sent: Sent) => request((started.get(framework) as Started).port, rawOf(sent))

describe.each(FRAMEWORKS)('what was written on $name', (writer) => {
  test.each(REPLY_STYLES)('is replayed everywhere, as it was: $name', async (style) => {
    store.clear()
    reply = style.reply
    const first = await send(writer, {})
    runs = 0
    for (const reader of FRAMEWORKS) {
      const replay = await send(reader, {})
      expect([reader.name, replay.header('Idempotent-Replayed')]).toEqual([reader.name, 'true'])
      expect([reader.name, essenceOf(replay, 'two')]).toEqual([reader.name, essenceOf(first, 'two')])
    }
    expect(runs).toBe(0)
  })

  test.each(REQUESTS)('is known everywhere by its request: $what', async ({ sent, again = sent }) => {
    store.clear()
    reply = () => ({ text: 'paid', headers: [['Content-Type', 'text/plain']] })
    await send(writer, sent)
    for (const reader of FRAMEWORKS) {
      const replay = await send(reader, again)
      expect([reader.name, replay.header('Idempotent-Replayed')]).toEqual([reader.name, 'true'])
    }
  })
})
