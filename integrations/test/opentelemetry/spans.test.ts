import { createHmac } from 'node:crypto'
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { NodeTracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace-node'
import express from 'express'
import { idempotency } from 'once-per-key'
import type { Store } from 'once-per-key/core'
import { createOperationEngine } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { counted, served } from '../../../test/recipes/served.js'
import { TIMES } from '../../../test/support/engine-on-trial.js'
import { failingStore } from '../../../test/support/failing-store.js'
import { failBefore } from '../../../test/support/faults.js'
import { gate } from '../../../test/support/gate.js'
import { telemetry } from '../support/telemetry.js'

// The spans of requests are active while their handlers run.
const provider = new NodeTracerProvider()
beforeAll(() => provider.register())
afterAll(() => {
  context.disable()
  trace.disable()
})

type Options = Parameters<typeof telemetry>[0] & {
  readonly store?: Store
  readonly work?: Parameters<typeof counted>[0]
}

/** An application each of whose requests has a span, as an instrumentation of HTTP makes it. */
async function start({ store = failingStore(), work, ...options }: Options = {}) {
  const told = telemetry(options)
  const once = idempotency({ store, scope: () => 'mer_acme', onEvent() {}, ...TIMES })
  const app = express()
  app.use((_req, res, next) => {
    told.tracer.startActiveSpan('request', (span) => {
      res.on('close', () => span.end())
      next()
    })
  })
  app.post('/payouts', express.json(), once, counted(work).handler)
  const { post } = await served(app)
  const requests = () => told.spans().filter(({ name }) => name === 'request')
  /** A response is received before the server has heard that it is closed. */
  const posted = async (...args: Parameters<typeof post>) => {
    const before = requests().length
    const response = await post(...args)
    await expect.poll(() => requests().length).toBeGreaterThan(before)
    return response
  }
  const commands = () => told.spans().filter(({ name }) => name.startsWith('once-per-key'))
  return { ...told, post, posted, requests, commands }
}

const namesOf = (spans: readonly ReadableSpan[]) => spans.map(({ name }) => name)
const parentsOf = (spans: readonly ReadableSpan[]) => spans.map(({ parentSpanContext }) => parentSpanContext?.spanId)

test('the span of a request says what was decided, and has a child for each command', async () => {
  const { posted, requests, commands } = await start()
  await posted()
  const [request] = requests()
  expect(request?.attributes).toEqual({
    'once_per_key.outcome': 'run',
    'once_per_key.previous_outcome': 'none',
    'once_per_key.attempt': 1,
    'once_per_key.run.id': expect.stringMatching(/^[0-9a-f]{32}$/),
  })
  expect(namesOf(commands())).toEqual(['once-per-key begin', 'once-per-key complete'])
  expect(parentsOf(commands())).toEqual([request, request].map((span) => span?.spanContext().spanId))
  for (const { kind, attributes, status } of commands()) {
    expect(kind).toBe(SpanKind.INTERNAL)
    expect(status).toEqual({ code: SpanStatusCode.UNSET })
    expect(attributes).toMatchObject({
      'once_per_key.command.outcome': 'ok',
      'once_per_key.attempt': 1,
      'once_per_key.run.id': request?.attributes['once_per_key.run.id'],
    })
  }
})

test.each([
  { outcome: 'bypass', sent: { key: null } },
  { outcome: 'key_invalid', sent: { key: 'x'.repeat(256) } },
  { outcome: 'mismatched', sent: { body: { amount: 200 } } },
])('the span of a request that is not run says why: $outcome', async ({ outcome, sent }) => {
  const { posted, requests } = await start()
  await posted()
  await posted(sent)
  expect(requests()[1]?.attributes).toEqual({ 'once_per_key.outcome': outcome })
})

test('a replay links to the request that made the answer', async () => {
  const { posted, requests } = await start()
  await posted()
  await posted({ key: 'order-2' })
  await posted()
  const [made, other, replay] = requests()
  expect(other?.links).toEqual([])
  expect(replay?.attributes).toMatchObject({ 'once_per_key.outcome': 'replay' })
  expect(replay?.links.map(({ context }) => context)).toEqual([made?.spanContext()])
})

test('a replay of what another process answered has no link', async () => {
  const store = new MemoryStore()
  const elsewhere = createOperationEngine({ store })
  const first = await start({ store })
  first.stop()
  await first.post()
  await elsewhere.idle()
  const second = await start({ store })
  await second.posted()
  expect(second.requests()[0]?.attributes).toMatchObject({ 'once_per_key.outcome': 'replay' })
  expect(second.requests()[0]?.links).toEqual([])
})

test('a command that fails has an error, without the words of the store', async () => {
  const store = failingStore()
  const { posted, commands } = await start({ store })
  store.next('begin', failBefore(Object.assign(new Error('order-1 of mer_acme'), { code: 'READONLY' })))
  await posted()
  const [begin] = commands()
  expect(begin?.attributes).toMatchObject({ 'once_per_key.command.outcome': 'failed', 'error.type': 'READONLY' })
  expect(begin?.status).toEqual({ code: SpanStatusCode.ERROR })
  expect(begin?.events).toEqual([])
})

test('each step is an event of its request’s span, with its label and nothing else', async () => {
  const store = new MemoryStore()
  const step = store.step.bind(store)
  let losses = 0
  store.step = (key, own) => {
    const isLost = own.label === 'ship' && own.state === 'done' && losses++ === 0
    return isLost ? Promise.reject(new Error('connection refused')) : step(key, own)
  }
  let attempts = 0
  const work = async ({ idempotency: run }: Express.Request) => {
    await run?.step('charge', () => 'charged')
    if (attempts++ === 0) throw new Error('no reply')
    await run?.step('ship', () => 'shipped')
    await run?.step('mail', () => 'sent') // It waits until the result of the one before it is recorded.
  }
  const { posted, requests } = await start({ store: store as Store, work })
  await posted()
  await posted()
  const [first, second] = requests().map(({ events }) => events.map(({ name, attributes }) => [name, attributes]))
  const event = (type: string, label: string) => [`once_per_key.${type}`, { 'once_per_key.step.label': label }]
  expect(first).toEqual([event('step_done', 'charge')])
  expect(second).toEqual([
    event('step_resumed', 'charge'),
    event('step_pending', 'ship'),
    event('step_done', 'ship'),
    event('step_done', 'mail'),
  ])
})

describe('a renewal', () => {
  test('belongs to the request whose lease it is, whoever’s timer sends it', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    try {
      const { opened, open } = gate()
      let runs = 0
      const work = () => {
        runs++
        return opened
      }
      const { post, requests, commands } = await start({ work })
      const first = post({ key: 'order-1' })
      await vi.waitUntil(() => runs === 1)
      const second = post({ key: 'order-2' })
      await vi.waitUntil(() => runs === 2)
      await vi.advanceTimersByTimeAsync(TIMES.leaseMs / 3)
      await vi.waitUntil(() => commands().filter(({ name }) => name === 'once-per-key renew').length === 2)
      open()
      await Promise.all([first, second])
      await vi.waitUntil(() => requests().length === 2)
      for (const request of requests()) {
        const id = request.attributes['once_per_key.run.id']
        const own = commands().filter(({ attributes }) => attributes['once_per_key.run.id'] === id)
        expect(namesOf(own)).toEqual(['once-per-key begin', 'once-per-key renew', 'once-per-key complete'])
        for (const parent of parentsOf(own)) expect(parent).toBe(request.spanContext().spanId)
      }
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('scope and key', () => {
  test('are on no span', async () => {
    const { posted, spans } = await start()
    await posted()
    await posted()
    const text = JSON.stringify(
      spans().map(({ name, attributes, events, links }) => ({ name, attributes, events, links })),
    )
    expect(text).not.toMatch(/mer_acme|order-1|hash/)
  })

  test('are on spans as their HMAC where a secret is given', async () => {
    const hashSecret = 'a secret of many characters'
    const hash = (text: string) => createHmac('sha256', hashSecret).update(text).digest('hex')
    const { posted, spans } = await start({ hashSecret })
    await posted()
    const hashed = { 'once_per_key.scope.hash': hash('mer_acme'), 'once_per_key.key.hash': hash('order-1') }
    expect(spans()).toHaveLength(3)
    for (const { attributes } of spans()) expect(attributes).toMatchObject(hashed)
    expect(JSON.stringify(spans().map(({ attributes }) => attributes))).not.toMatch(/mer_acme|order-1/)
  })
})
