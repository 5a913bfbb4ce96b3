import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import type { Step } from '../support/bindings.js'

/** One way of answering, as handlers do. */
export interface AnswerStyle {
  readonly name: string
  readonly handler: Step
  readonly method?: 'HEAD' | 'PUT'
  readonly needsExpress?: true
  /** compression calls no callbacks, and express-session takes them for chunks. */
  readonly bareOnly?: true
}

/** The same bytes in every run, and no text: compressible by nothing, valid in no encoding. */
export const NOISE = Buffer.concat(
  Array.from({ length: 2_048 }, (_, i) => createHash('sha256').update(`noise ${i}`).digest()),
)

const FILE = fileURLToPath(new URL('../../package.json', import.meta.url))

const CHUNKS = ['{"paid":', Buffer.from('"zwölf €"'), '}']

export const ANSWER_STYLES: readonly AnswerStyle[] = [
  { name: 'end with a string', handler: (_req, res) => res.end('paid ✓') },
  { name: 'end with a Buffer', handler: (_req, res) => res.end(Buffer.from([0, 255, 254, 13, 10])) },
  { name: 'end with a Uint8Array', handler: (_req, res) => res.end(new Uint8Array([1, 2, 200])) },
  { name: 'an empty end', handler: (_req, res) => res.end() },
  { name: 'an end with nothing but a callback', bareOnly: true, handler: (_req, res) => res.end(() => {}) },
  { name: 'an end with an empty string', handler: (_req, res) => res.end('') },
  { name: 'an end with false', bareOnly: true, handler: (_req, res) => res.end(false) },
  { name: '64 KiB of noise', handler: (_req, res) => res.end(NOISE) },
  {
    name: 'writes of several kinds, then an end',
    handler(_req, res) {
      for (const chunk of CHUNKS) res.write(chunk)
      res.end('\n')
    },
  },
  {
    name: 'writes spread over time',
    handler(_req, res) {
      res.write('a')
      setImmediate(() => {
        res.write('b')
        setImmediate(() => res.end('c'))
      })
    },
  },
  {
    name: 'writes and an end with callbacks',
    bareOnly: true,
    handler(_req, res) {
      res.write('a', () => res.write('b', 'utf8', () => res.end('c', 'utf8', () => {})))
    },
  },
  {
    name: 'writes in hex, base64 and Latin-1',
    handler(_req, res) {
      res.write('00ff', 'hex')
      res.write('/+8=', 'base64')
      res.write('é', 'latin1')
      res.end('é', 'latin1')
    },
  },
  {
    name: 'an empty write, then an end',
    handler(_req, res) {
      res.write('')
      res.end('after it')
    },
  },
  {
    name: 'writes while corked',
    handler(_req, res) {
      res.cork()
      res.write('a')
      res.write('b')
      res.uncork()
      res.end('c')
    },
  },
  { name: 'pipe', handler: (_req, res) => Readable.from(CHUNKS, { objectMode: false }).pipe(res) },
  { name: 'pipe of 64 KiB', handler: (_req, res) => Readable.from([NOISE, NOISE.subarray(7)]).pipe(res) },
  { name: 'pipeline', handler: (_req, res) => pipeline(Readable.from([NOISE, 'end']), res) },
  {
    name: 'pipeline from a generator',
    async handler(_req, res) {
      await pipeline(async function* () {
        yield 'a'
        yield 'b'
      }, res)
    },
  },
  {
    name: 'writeHead with an object',
    handler(_req, res) {
      res.writeHead(201, { 'Content-Type': 'text/plain', 'X-Count': 3, 'X-Many': ['a', 'b'] })
      res.end('created')
    },
  },
  {
    name: 'writeHead with a flat array',
    handler(_req, res) {
      res.writeHead(201, ['Content-Type', 'text/plain', 'X-Receipt', '17'])
      res.end('created')
    },
  },
  {
    name: 'writeHead over headers that were set',
    handler(_req, res) {
      res.setHeader('X-Receipt', 'old')
      res.setHeader('X-Other', 'kept')
      res.writeHead(202, { 'x-receipt': 'new' }).end('accepted')
    },
  },
  {
    name: 'writeHead with a status message and headers',
    handler: (_req, res) => res.writeHead(200, 'Paid In Full', { 'X-Receipt': '17' }).end('paid'),
  },
  { name: 'writeHead with a numeric string', handler: (_req, res) => res.writeHead('202').end('accepted') },
  {
    name: 'a status message that was set',
    handler(_req, res) {
      res.statusCode = 299
      res.statusMessage = 'Quite Fine'
      res.end('fine')
    },
  },
  {
    name: 'a status without a name',
    handler(_req, res) {
      res.statusCode = 299
      res.end('fine')
    },
  },
  {
    name: 'two Link headers',
    handler(_req, res) {
      res.setHeader('Link', ['</a>; rel="next"', '</b>; rel="prev"'])
      res.end('linked')
    },
  },
  {
    name: 'setHeaders and appendHeader',
    handler(_req, res) {
      res.setHeaders(new Map([['X-One', '1']]))
      res.appendHeader('X-One', 'one')
      res.appendHeader('X-Two', ['2', 'two'])
      res.end('counted')
    },
  },
  {
    name: 'numeric header values',
    handler(_req, res) {
      res.setHeader('X-Amount', 1200)
      res.end('counted')
    },
  },
  {
    name: 'header bytes that are not ASCII',
    handler(_req, res) {
      res.setHeader('X-Name', 'Zo\u00eb \u00a3')
      res.end(Buffer.from('named'), 'latin1')
    },
  },
  {
    name: 'a Content-Length of its own',
    handler(_req, res) {
      res.setHeader('Content-Length', 4)
      res.write('pa')
      res.end('id')
    },
  },
  {
    name: 'a Transfer-Encoding of its own',
    handler(_req, res) {
      res.setHeader('Transfer-Encoding', 'chunked')
      res.write('pa')
      res.end('id')
    },
  },
  {
    name: '204',
    handler(_req, res) {
      res.statusCode = 204
      res.end()
    },
  },
  {
    name: '204 with a body, which is not sent',
    handler(_req, res) {
      res.statusCode = 204
      res.write('never')
      res.end('seen')
    },
  },
  {
    name: '304, where its method is covered',
    method: 'PUT',
    handler(_req, res) {
      res.setHeader('ETag', '"1"')
      res.statusCode = 304
      res.end()
    },
  },
  {
    name: 'HEAD, where it is covered',
    method: 'HEAD',
    handler(_req, res) {
      res.setHeader('Content-Length', 1234)
      res.setHeader('X-Receipt', '17')
      res.end()
    },
  },
  { name: 'HEAD with a body, which is not sent', method: 'HEAD', handler: (_req, res) => res.end('never seen') },
  { name: 'json', needsExpress: true, handler: (_req, res) => res.status(201).json({ paid: 1200, to: 'Zoë' }) },
  { name: 'send of a string', needsExpress: true, handler: (_req, res) => res.send('<b>paid ✓</b>') },
  { name: 'send of a Buffer', needsExpress: true, handler: (_req, res) => res.send(NOISE) },
  { name: 'sendStatus', needsExpress: true, handler: (_req, res) => res.sendStatus(202) },
  { name: 'sendFile', needsExpress: true, handler: (_req, res) => res.sendFile(FILE) },
  { name: 'redirect', needsExpress: true, handler: (_req, res) => res.redirect(303, '/receipts/17') },
  { name: 'json after HEAD', method: 'HEAD', needsExpress: true, handler: (_req, res) => res.json({ paid: true }) },
]
