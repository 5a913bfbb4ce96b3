import { Buffer } from 'node:buffer'
import type { KindName } from './mounts.js'
import type { Random } from './random.js'
import { operationOf, requestOf } from './requests.js'

export interface Hostile {
  readonly bytes: Buffer
  /** The handlers of those of its requests that stood behind another. */
  readonly behind: readonly KindName[]
}

/** What is no HTTP, or on its edge. Nobody says what it must be answered: only that it harms nobody. */
export function hostileRequests(random: Random, number: number): Hostile {
  if (random.chance(0.3)) return { bytes: asBytes(random.pick(CRAFTED)(number)), behind: [] }
  const requests = Array.from({ length: 1 + random.below(3) }, (_, i) => {
    const operation = { ...operationOf(random, number), merchant: 'hostile' }
    return requestOf(operation, `hostile${number}.${i}`, random)
  })
  let bytes: Buffer = Buffer.concat(requests.map((request) => request.bytes))
  for (let i = 1 + random.below(3); i > 0; i--) bytes = random.pick(MUTATIONS)(bytes, random)
  return { bytes, behind: requests.slice(1).map(({ kind }) => kind) }
}

type Mutation = (bytes: Buffer, random: Random) => Buffer

/** Most bytes are of bodies; the heads are what parsers stumble over. */
function place(bytes: Buffer, random: Random): number {
  return random.below(random.chance(0.7) ? Math.min(bytes.length, 400) : bytes.length)
}

const splice = (bytes: Buffer, at: number, removed: number, added: Buffer) =>
  Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at + removed)])

const MUTATIONS: readonly Mutation[] = [
  (bytes, random) => splice(bytes, place(bytes, random), 1, random.bytes(1)),
  (bytes, random) => splice(bytes, place(bytes, random), 1 + random.below(20), Buffer.alloc(0)),
  (bytes, random) => splice(bytes, place(bytes, random), 0, Buffer.from(random.pick(INSERTED), 'latin1')),
  (bytes, random) => bytes.subarray(0, place(bytes, random)),
  (bytes, random) => {
    const at = place(bytes, random)
    return splice(bytes, at, 0, bytes.subarray(at, at + 1 + random.below(60)))
  },
  (bytes, random) => splice(bytes, bytes.indexOf('\r\n') + 2, 0, Buffer.from(`${random.pick(EXTRA)}\r\n`, 'latin1')),
  (bytes, random) => splice(bytes, bytes.indexOf('\r\n') + 2, 0, Buffer.from(`${random.pick(EXTRA)}\r\n`, 'latin1')),
]

const INSERTED = ['\0', '\r', '\n', '\r\n', '\r\n\r\n', '\t', ' ', ':', '\x7f', '\xff', '\r\n ', '%00', '"', ';', ',']

const EXTRA = [
  'Content-Length: 5',
  'Content-Length: -1',
  'Content-Length: 1e3',
  'Content-Length: +5',
  'Content-Length: 99999999999999999999',
  'Content-Length: 3, 3',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: identity',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding : chunked',
  'Idempotency-Key: folded\r\n line',
  'Idempotency-Key : spaced',
  'Idempotency-Key',
  'Idempotency-Key: nul\0',
  'Idempotency-Key: del\x7f',
  'Idempotency-Key: bell\x07',
  `Idempotency-Key: ${'k'.repeat(20_000)}`,
  `X-Huge: ${'x'.repeat(20_000)}`,
  'x: y\r\n'.repeat(3_000).trimEnd(),
  'Expect: the impossible',
  'Upgrade: websocket\r\nConnection: Upgrade',
  'Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nConnection: Upgrade, HTTP2-Settings',
  'Connection: close',
  'Connection: Idempotency-Key',
  'Host: another',
  'X-Merchant: hostile',
  ': no name',
  'no colon',
]

const headOf = (line: string, ...headers: readonly string[]) =>
  [line, 'Host: test', 'X-Merchant: hostile', ...headers, '', ''].join('\r\n')
const POST = 'POST /plain/json/1 HTTP/1.1'

const CRAFTED: readonly ((number: number) => string)[] = [
  (n) => headOf('post /plain/json/1 HTTP/1.1', `Idempotency-Key: c${n}`),
  (n) => headOf('POST /plain/json/1 HTTP/1.2', `Idempotency-Key: c${n}`),
  (n) => headOf('POST /plain/json/1 HTTP/0.9', `Idempotency-Key: c${n}`),
  (n) => headOf('POST  /plain/json/1  HTTP/1.1', `Idempotency-Key: c${n}`),
  (n) => headOf('POST plain/json HTTP/1.1', `Idempotency-Key: c${n}`),
  (n) => headOf('POST /plain/json/\xff\xe9#[]{}|^`<>" HTTP/1.1', `Idempotency-Key: c${n}`),
  (n) => headOf('POST http://[::1:/plain/json/1 HTTP/1.1', `Idempotency-Key: c${n}`),
  (n) => headOf('POST //plain//json/../%2e%2e/%zz HTTP/1.1', `Idempotency-Key: c${n}`),
  (n) => headOf(`POST /plain/json/${'a'.repeat(15_000)} HTTP/1.1`, `Idempotency-Key: c${n}`),
  (n) => headOf('OPTIONS * HTTP/1.1', `Idempotency-Key: c${n}`),
  (n) => headOf('CONNECT test:80 HTTP/1.1', `Idempotency-Key: c${n}`),
  (n) => headOf('TRACE /plain/json/1 HTTP/1.1', `Idempotency-Key: c${n}`),
  (n) => headOf('PRI * HTTP/2.0', `Idempotency-Key: c${n}`),
  (n) => headOf(POST, `Idempotency-Key: c${n}`, 'Expect: nothing'),
  (n) => headOf(POST, `Idempotency-Key: c${n}`).replaceAll('\r\n', '\n'),
  (n) => `${headOf(POST, `Idempotency-Key: c${n}`, 'Transfer-Encoding: chunked')}zz\r\n{}\r\n0\r\n\r\n`,
  (n) => `${headOf(POST, `Idempotency-Key: c${n}`, 'Transfer-Encoding: chunked')}ffffffffffffffffff\r\n{}`,
  (n) => `${headOf(POST, `Idempotency-Key: c${n}`, 'Transfer-Encoding: chunked')}2\r\n{}0\r\n\r\n`,
  (n) => `${headOf(POST, `Idempotency-Key: c${n}`, 'Transfer-Encoding: chunked')}2;${'e'.repeat(20_000)}\r\n{}\r\n`,
  (n) => `${headOf(POST, `Idempotency-Key: c${n}`, 'Content-Length: 2')}{} and some more that is no request`,
  (n) => `${headOf(POST, `Idempotency-Key: c${n}`, 'Content-Type: application/json', 'Content-Length: 100')}{"amount":`,
  () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  () => '\r\n\r\n\r\n',
  () => '\0',
  (n) => `POST /plain/json/1 HTTP/1.1\r\nIdempotency-Key: c${n}\r\n\r\n`,
]

function asBytes(text: string): Buffer {
  return Buffer.from(text, 'latin1')
}
