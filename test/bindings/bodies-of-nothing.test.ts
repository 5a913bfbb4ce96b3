import type { RequestListener } from 'node:http'
import { gzipSync } from 'node:zlib'
import connect from 'connect'
import express, { type RequestHandler } from 'express'
import express4 from 'express4'
import Koa from 'koa'
import bodyParser from 'koa-bodyparser'
import { bodyField, type IdempotencyOptions, idempotency, singleTenant } from 'once-per-key'
import { idempotency as onKoa } from 'once-per-key/koa'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { listen } from '../support/bindings.js'
import { connectTo } from '../support/raw-client.js'
import { FRAMEWORKS } from './suite/frameworks/index.js'

// Any client could send a form of nothing, such as `&&&`: its parser shows `{}`, which was taken for the mark of a parser that has left the
// body alone. That was 500, and an error in the application's log.

const FORM = 'application/x-www-form-urlencoded'
const JSON_TYPE = 'application/json'

interface Body {
  readonly bytes: string | Buffer
  readonly type: string
  readonly isChunked?: true
  readonly isCompressed?: true
}

const FORMS: readonly Body[] = [
  { bytes: '&&&', type: FORM },
  { bytes: '&&&', type: `${FORM}; charset=utf-8`, isChunked: true },
  { bytes: '', type: FORM, isChunked: true },
]

const OTHERS: readonly Body[] = [
  { bytes: '===', type: FORM },
  { bytes: '=&=', type: FORM },
  { bytes: '   ', type: FORM },
  { bytes: '__proto__=1', type: FORM },
  { bytes: gzipSync(''), type: FORM, isCompressed: true },
  { bytes: gzipSync('&&&'), type: FORM, isCompressed: true },
  { bytes: '', type: JSON_TYPE, isChunked: true },
  { bytes: '   ', type: JSON_TYPE },
  { bytes: '{ }', type: JSON_TYPE },
  { bytes: '{}', type: JSON_TYPE, isChunked: true },
  { bytes: 'null', type: JSON_TYPE },
  { bytes: gzipSync(''), type: JSON_TYPE, isCompressed: true },
  { bytes: gzipSync('{}'), type: JSON_TYPE, isCompressed: true },
  { bytes: '', type: '', isChunked: true },
  { bytes: '', type: 'text/plain', isChunked: true },
  { bytes: gzipSync(''), type: 'text/plain', isCompressed: true },
  { bytes: '', type: 'application/octet-stream', isChunked: true },
  { bytes: gzipSync(''), type: 'application/octet-stream', isCompressed: true },
]

async function post(port: number, key: string, { bytes, type, isChunked, isCompressed }: Body) {
  const connection = connectTo(port)
  onTestFinished(() => void connection.socket.destroy())
  const body = Buffer.from(bytes as string)
  const lines = ['POST / HTTP/1.1', 'Host: test', `Idempotency-Key: ${key}`, 'Connection: close']
  if (type !== '') lines.push(`Content-Type: ${type}`)
  if (isCompressed) lines.push('Content-Encoding: gzip')
  lines.push(isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`)
  connection.socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  const chunk = body.length === 0 ? '' : `${body.length.toString(16)}\r\n${body}\r\n`
  connection.socket.write(isChunked ? `${chunk}0\r\n\r\n` : body)
  const { status, header } = await connection.reply()
  return { status, isReplay: header('Idempotent-Replayed') === 'true' }
}

interface Setting {
  /** Hears of what reaches the error handling of the application, parsers' refusals aside. */
  readonly onError: (error: unknown) => void
}

interface Place {
  readonly name: string
  start(setting: Setting): Promise<number>
}

const given: IdempotencyOptions = { store: new MemoryStore(), scope: singleTenant }
const fresh = () => ({ ...given, store: new MemoryStore() })
/** Of parsers, which say so themselves. */
const statusOf = (error: unknown) => (error as { readonly status?: number }).status

function onNode(name: string, create: () => unknown, parsers: readonly RequestHandler[]): Place {
  return {
    name,
    async start({ onError }) {
      const app = create() as express.Express
      for (const parser of parsers) app.use(parser) // Connect takes one at a time.
      app.use(idempotency(fresh()))
      app.use((_req, res) => void res.end('paid'))
      app.use(((error, _req, res, _next) => {
        const status = statusOf(error)
        if (status === undefined) onError(error)
        res.statusCode = status ?? 500
        res.end()
      }) as express.ErrorRequestHandler)
      return listening(app)
    },
  }
}

async function listening(listener: RequestListener): Promise<number> {
  const { port, close } = await listen(listener)
  onTestFinished(close)
  return port
}

const parsersOf = ({ json, urlencoded }: typeof express, extended: boolean) => [
  json({ strict: !extended }),
  urlencoded({ extended }),
]
const EXPRESS_4 = express4 as unknown as typeof express

const koaOfItsOwn: Place = {
  name: 'Koa, strict',
  start({ onError }) {
    const app = new Koa()
    app.silent = true
    app.on('error', (error) => statusOf(error) ?? onError(error))
    app.use(bodyParser()).use(onKoa({ store: new MemoryStore(), scope: singleTenant }))
    app.use((ctx) => {
      ctx.body = 'paid'
    })
    return listening(app.callback())
  },
}

const PLACES: readonly Place[] = [
  ...[true, false].flatMap((extended) => [
    onNode(`Express 4, its parsers, extended: ${extended}`, EXPRESS_4, parsersOf(EXPRESS_4, extended)),
    onNode(`Express 5, its parsers, extended: ${extended}`, express, parsersOf(express, extended)),
    onNode(`Connect, body-parser 1, extended: ${extended}`, connect, parsersOf(EXPRESS_4, extended)),
  ]),
  koaOfItsOwn,
  ...FRAMEWORKS.map(
    ({ name, start }): Place => ({
      name: `${name}, as the suite serves it`,
      async start({ onError }) {
        const { port, close } = await start({
          isProtected: true,
          options: { store: new MemoryStore(), scope: () => 'acme', onEvent() {} },
          handler: () => ({ text: 'paid' }),
          onError(error) {
            const status = statusOf(error) ?? (error as { readonly statusCode?: number }).statusCode
            if (status === undefined) onError(error)
            return { status: status ?? 500 }
          },
        })
        onTestFinished(close)
        return port
      },
    }),
  ),
]

describe.each(PLACES)('on $name', ({ name, start }) => {
  test('a body of nothing is an empty one, or the client’s mistake, and never an error of the application', async () => {
    const errors: unknown[] = []
    const port = await start({ onError: (error) => errors.push(error) })
    for (const [i, body] of [...FORMS, ...OTHERS].entries()) {
      const what = JSON.stringify(body)
      const { status } = await post(port, `k${i}`, body)
      expect([200, 400, 415], what).toContain(status)
      if (status !== 200) continue
      expect(await post(port, `k${i}`, body), what).toEqual({ status: 200, isReplay: true })
      expect((await post(port, `k${i}`, { bytes: 'amount=1', type: FORM })).status, what).toBe(409)
    }
    expect(errors).toEqual([])
  })

  // On Express 4 the parsers of Express 5 do not mark what they have read.
  test.skipIf(name.startsWith('Express 4, as'))('a form without fields is an empty one', async () => {
    const port = await start({ onError() {} })
    for (const body of FORMS) expect((await post(port, 'k', body)).status, JSON.stringify(body)).toBe(200)
  })
})

describe('where nobody can tell whether `{}` is all', () => {
  async function startExpress4(options: Partial<IdempotencyOptions> = {}) {
    const app = EXPRESS_4()
    const codes: unknown[] = []
    const reads: RequestHandler = async (req, _res, next) => {
      for await (const _ of req) {
      }
      next()
    }
    app.use(EXPRESS_4.json(), reads, idempotency({ ...fresh(), ...options }), (_req, res) => void res.end('paid'))
    app.use(((error, _req, res, _next) => {
      codes.push(error.code)
      res.sendStatus(500)
    }) as express.ErrorRequestHandler)
    return { port: await listening(app), codes }
  }

  test('the body is 400, and no form gets the response to another one', async () => {
    const { port, codes } = await startExpress4()
    for (const bytes of ['amount=1', 'amount=9999', '&&&']) {
      expect((await post(port, 'k', { bytes, type: FORM })).status).toBe(400)
    }
    expect(codes).toEqual([])
  })

  test('also where a key may be in it', async () => {
    const legacyKey = bodyField('idempotencyKey', { deprecatedSince: new Date(0) })
    const { port } = await startExpress4({ legacyKey })
    expect((await post(port, 'k', { bytes: 'idempotencyKey=a', type: FORM })).status).toBe(400)
  })

  test('with a `fingerprint` it does not matter', async () => {
    const { port } = await startExpress4({ fingerprint: () => 'its bytes' })
    expect((await post(port, 'k', { bytes: 'amount=1', type: FORM })).status).toBe(200)
  })
})
