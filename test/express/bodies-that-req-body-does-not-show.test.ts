import express, { type ErrorRequestHandler, type RequestHandler } from 'express'
import express4 from 'express4'
import multer from 'multer'
import {
  bodyField,
  type IdempotencyEvent,
  type IdempotencyOptions,
  type IdempotencyRequest,
  idempotency,
  withoutBody,
} from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { listen } from '../support/bindings.js'
import { VERSIONS } from '../support/payouts.js'

// `fingerprint` switched the parser check off: mounted before multer it saw no file, and another file under the same key was
// replayed. A body that some middleware had read into `req.rawBody` counted as empty: `amount=9999` got the answer of
// `amount=1`. And a content type that no parser covers was the application's error, for the error tracker, not the client's.

interface Raw {
  rawBody?: Buffer
}

/** Keeps the bytes as webhook receivers and proxies do, and leaves `req.body` alone. */
const keepRawBody: RequestHandler = async (req: express.Request & Raw, _res, next) => {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk)
  req.rawBody = Buffer.concat(chunks)
  next()
}

const refuse: ErrorRequestHandler = (error, _req, res, _next) => void res.status(500).json({ code: error.code })

describe.each(VERSIONS)('on $version', ({ make }) => {
  async function start(
    steps: { before?: readonly RequestHandler[]; behind?: readonly RequestHandler[] },
    options: Partial<IdempotencyOptions<IdempotencyRequest & Raw>> = {},
  ) {
    const events: IdempotencyEvent[] = []
    let runs = 0
    const app = make()
    const once = idempotency<IdempotencyRequest & Raw>({
      store: new MemoryStore(),
      scope: () => 'acme',
      onEvent: (event) => events.push(event),
      ...options,
    })
    const { before = [], behind = [] } = steps
    app.post('/documents', ...before, once, ...behind, (_req, res) => void res.status(201).json({ run: ++runs }))
    app.use(refuse)
    const { port, close } = await listen(app)
    onTestFinished(close)
    async function send(body: string | FormData, type?: string) {
      const headers = { 'Idempotency-Key': 'order-1', ...(type !== undefined && { 'Content-Type': type }) }
      const response = await fetch(`http://127.0.0.1:${port}/documents`, { method: 'POST', headers, body })
      const { code, message, detail } = (await response.json()) as Record<string, unknown>
      return { status: response.status, code, message, detail, type: response.headers.get('content-type') }
    }
    return { send, runs: () => runs, events }
  }

  function formOf(content: string): FormData {
    const form = new FormData()
    form.append('document', new Blob([content]), 'passport.txt')
    return form
  }

  const upload = () => multer({ limits: { fileSize: 1_000, files: 1 } }).single('document')
  const ofFile = ({ file }: IdempotencyRequest) => file?.buffer ?? null

  test('a `fingerprint` before multer is misuse, and no file is taken for another', async () => {
    const behind = [upload()]
    const { send, runs } = await start({ behind }, { fingerprint: ofFile })
    for (const content of ['one', 'another']) {
      expect(await send(formOf(content))).toMatchObject({ status: 500, code: 'body_not_parsed' })
    }
    expect(runs()).toBe(0)
  })

  test('a `fingerprint` behind multer sees the file', async () => {
    const before = [upload()]
    const { send, runs } = await start({ before }, { fingerprint: ofFile })
    expect(await send(formOf('one'))).toMatchObject({ status: 201 })
    expect(await send(formOf('another'))).toMatchObject({ status: 409, code: 'mismatched' })
    expect(runs()).toBe(1)
  })

  test('a `fingerprint` that does without the body may come before multer', async () => {
    const behind = [upload()]
    const { send, runs } = await start({ behind }, { fingerprint: withoutBody(() => null) })
    expect(await send(formOf('one'))).toMatchObject({ status: 201 })
    expect(await send(formOf('another'))).toMatchObject({ status: 201 })
    expect(runs()).toBe(1)
  })

  test.each(['application/x-www-form-urlencoded', 'application/json', 'text/plain'])(
    'a body that is in `req.rawBody` alone needs a `fingerprint`: %s',
    async (type) => {
      const { send, runs } = await start({ before: [keepRawBody] })
      for (const body of ['amount=1', 'amount=9999']) {
        expect(await send(body, type)).toMatchObject({ status: 500, code: 'fingerprint_required' })
      }
      expect(runs()).toBe(0)
    },
  )

  test('a body of one byte is not taken for `{}`', async () => {
    const discardBody: RequestHandler = async (req, _res, next) => {
      for await (const _chunk of req) req.body = {}
      next()
    }
    const { send, runs } = await start({ before: [discardBody] })
    for (const body of ['1', '2']) {
      expect(await send(body, 'text/plain')).toMatchObject({ status: 500, code: 'fingerprint_required' })
    }
    expect(runs()).toBe(0)
  })

  test('so does one whose type the application’s parser leaves alone', async () => {
    const { send, runs } = await start({ before: [make.json(), keepRawBody] })
    for (const body of ['amount=1', 'amount=9999']) {
      expect(await send(body, 'application/x-www-form-urlencoded')).toMatchObject({ code: 'fingerprint_required' })
    }
    expect(runs()).toBe(0)
  })

  test.each([
    {
      name: 'JSON, beside a parser of forms',
      parser: () => make.urlencoded({ extended: true }),
      type: 'application/json',
    },
    { name: 'JSON of a type of its own', parser: () => make.json(), type: 'application/vnd.acme+json' },
    { name: 'without a valid content type', parser: () => make.json(), type: 'json' },
    {
      name: 'JSON, beside a parser of forms of body-parser 1',
      parser: () => express4.urlencoded({ extended: true }),
      type: 'application/json',
    },
    { name: 'JSON of a type of its own, beside body-parser 1', parser: () => express4.json(), type: 'text/x+json' },
  ])('and never counts as the `{}` of a parser that leaves it alone: $name', async ({ parser, type }) => {
    const { send, runs } = await start({ before: [parser(), keepRawBody] })
    for (const amount of [1, 9999]) {
      expect(await send(JSON.stringify({ amount }), type)).toMatchObject({ status: 500, code: 'fingerprint_required' })
    }
    expect(runs()).toBe(0)
  })

  test('a key in it is not missed', async () => {
    const legacyKey = bodyField('idempotencyKey', { deprecatedSince: new Date(0) })
    const { send, runs } = await start({ before: [make.urlencoded({ extended: true }), keepRawBody] }, { legacyKey })
    const body = JSON.stringify({ idempotencyKey: 'order-2' })
    expect(await send(body, 'application/json')).toMatchObject({ status: 500, code: 'body_not_parsed' })
    expect(runs()).toBe(0)
  })

  test('an empty object that a parser has read counts as one, and so does what middleware leaves of a body', async () => {
    const empties: RequestHandler = (req, _res, next) => {
      req.body = {}
      next()
    }
    const { send, runs } = await start({ before: [make.json(), empties] })
    for (const body of ['{}', '{ }', '{"unknown":1}']) {
      expect(await send(body, 'application/json')).toMatchObject({ status: 201 })
    }
    expect(runs()).toBe(1)
  })

  test('an empty object counts as one beside its bytes, too', async () => {
    const verify = (req: object, _res: unknown, rawBody: Buffer) => void Object.assign(req, { rawBody })
    const { send, runs } = await start({ before: [make.json({ verify })] })
    for (const body of ['{}', ' {\n} ']) expect(await send(body, 'application/json')).toMatchObject({ status: 201 })
    expect(runs()).toBe(1)
  })

  test('so does one that a parser of the application’s own has read', async () => {
    const parses: RequestHandler = async (req, _res, next) => {
      const chunks: Buffer[] = []
      for await (const chunk of req) chunks.push(chunk)
      req.body = JSON.parse(Buffer.concat(chunks).toString())
      next()
    }
    const { send } = await start({ before: [parses] })
    expect(await send('{}', 'application/json')).toMatchObject({ status: 201 })
  })

  test('with one that returns `req.rawBody`, it counts', async () => {
    const { send } = await start({ before: [keepRawBody] }, { fingerprint: (req) => req.rawBody })
    const type = 'application/x-www-form-urlencoded'
    expect(await send('amount=1', type)).toMatchObject({ status: 201 })
    expect(await send('amount=9999', type)).toMatchObject({ status: 409, code: 'mismatched' })
    expect(await send('amount=1', type)).toMatchObject({ status: 201 })
  })

  test('a content type that no parser covers is the client’s mistake, and is told as such', async () => {
    const { send, runs, events } = await start({ before: [make.json()] })
    const refusal = await send('<amount>1</amount>', 'application/xml; charset=utf-8')
    expect(refusal).toMatchObject({
      status: 415,
      code: 'content_type_unsupported',
      type: 'application/problem+json',
      detail: expect.stringContaining('application/xml'),
    })
    expect(events).toEqual([{ type: 'rejected', code: 'content_type_unsupported' }])
    expect(runs()).toBe(0)
  })
})

describe('the process warns of a content type that is refused', () => {
  async function warningsOf(types: readonly string[]) {
    const warnings: (Error & { code?: string })[] = []
    const hear = (warning: Error) => warnings.push(warning)
    process.on('warning', hear)
    onTestFinished(() => void process.off('warning', hear))
    const once = idempotency<IdempotencyRequest>({ store: new MemoryStore(), scope: () => 'acme' })
    const app = express()
    app.post('/', express.json(), once, (_req, res) => void res.json({}))
    const { port, close } = await listen(app)
    onTestFinished(close)
    for (const type of types) {
      const headers = { 'Idempotency-Key': 'order-1', 'Content-Type': type }
      const { status } = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: 'x' })
      expect(status).toBe(415)
    }
    await new Promise((resolve) => setImmediate(resolve))
    return warnings.filter(({ code }) => code === 'ONCE_PER_KEY_CONTENT_TYPE_UNSUPPORTED')
  }

  test('once for each, and says what to mount', async () => {
    const warnings = await warningsOf(['text/csv', 'Text/CSV; header=present', 'text/calendar', 'text/csv'])
    expect(warnings.map(({ message }) => /type: '(\S+)'/.exec(message)?.[1])).toEqual(['text/csv', 'text/calendar'])
    for (const { message } of warnings) expect(message).toMatch(/mount their parser before it/)
  })

  test('not without end: clients choose their types', async () => {
    const warnings = await warningsOf(Array.from({ length: 40 }, (_, i) => `text/made-up-${i}`))
    expect(warnings.length).toBeLessThan(30)
    expect(warnings.at(-1)?.message).toContain('without a warning')
  })
})

test('a request without a body is the same on each version of Express: what one has run, the other replays', async () => {
  const store = new MemoryStore()
  let runs = 0
  async function post(make: (typeof VERSIONS)[number]['make']): Promise<string | null> {
    const app = make()
    app.post(
      '/refunds',
      express4.json(),
      idempotency({ store, scope: () => 'acme' }),
      (_req, res) => void res.status(201).json({ run: ++runs }),
    )
    const { port, close } = await listen(app)
    onTestFinished(close)
    const headers = { 'Idempotency-Key': 'refund-1' }
    const response = await fetch(`http://127.0.0.1:${port}/refunds`, { method: 'POST', headers })
    return response.headers.get('Idempotent-Replayed')
  }
  const replayed: (string | null)[] = []
  for (const { make } of [...VERSIONS, ...VERSIONS]) replayed.push(await post(make))
  expect(replayed).toEqual([null, 'true', 'true', 'true'])
  expect(runs).toBe(1)
})
