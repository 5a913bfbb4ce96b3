import { NOISE } from '../answer-styles.js'
import type { Reply } from './framework.js'

export interface ReplyStyle {
  readonly name: string
  /** A fresh one each time: a stream is read once. */
  readonly reply: () => Reply
}

/** Ways to answer, in no framework's words. */
export const REPLY_STYLES: readonly ReplyStyle[] = [
  { name: 'json', reply: () => ({ status: 201, json: { paid: 1200, to: 'Zoë' } }) },
  { name: 'text', reply: () => ({ text: 'paid ✓', headers: [['Content-Type', 'text/plain; charset=utf-8']] }) },
  { name: 'bytes', reply: () => ({ bytes: NOISE, headers: [['Content-Type', 'image/png']] }) },
  { name: 'no body', reply: () => ({ status: 202 }) },
  { name: '204', reply: () => ({ status: 204, headers: [['X-Receipt', '17']] }) },
  { name: 'a redirect', reply: () => ({ status: 303, redirect: 'http://test/receipts/17' }) },
  { name: 'a stream', reply: () => ({ headers: [['Content-Type', 'application/octet-stream']], stream: pieces() }) },
  {
    name: 'an empty stream',
    reply: () => ({ headers: [['Content-Type', 'application/octet-stream']], stream: none() }),
  },
  {
    name: 'several Link headers',
    reply: () => ({
      text: 'linked',
      headers: [
        ['Content-Type', 'text/plain; charset=utf-8'],
        ['Link', '</a>; rel="next"'],
        ['Link', '</b>; rel="prev"'],
      ],
    }),
  },
  {
    name: 'header bytes that are not ASCII',
    reply: () => ({
      bytes: Buffer.from('named'),
      headers: [
        ['Content-Type', 'application/octet-stream'],
        ['X-Name', 'Zo\u00eb \u00a3'],
      ],
    }),
  },
]

async function* pieces(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('{"paid":')
  await new Promise((resolve) => setImmediate(resolve))
  yield Buffer.from('"zwölf €"')
  yield Buffer.from('}')
}

async function* none(): AsyncGenerator<Uint8Array> {}
