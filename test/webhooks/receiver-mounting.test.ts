import type { ServerResponse } from 'node:http'
import { MemoryStore } from 'once-per-key/memory'
import { type WebhookReceiver, type WebhookReceiverEvent, webhookReceiver } from 'once-per-key/webhooks'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { BINDINGS, listen, type Step } from '../support/bindings.js'
import { deliver, MERCHANT_PATH, merchantUpdated, receive } from '../support/deliveries.js'
import { problemIn } from './problem-in.js'

describe.each(BINDINGS)('on $name', (binding) => {
  test.each([
    { path: '/', taken: false },
    { path: '/api/service/webhook-event', taken: false },
    { path: '/api/service/webhook-event/', taken: false },
    { path: '/api/service/webhook-event/merchant_updated/more', taken: false },
    { path: '/api/service/webhook-events/merchant_updated', taken: false },
    { path: '/other-api/service/webhook-event/merchant_updated', taken: false },
    { path: '/?to=/api/service/webhook-event/merchant_updated', taken: false },
    { path: MERCHANT_PATH, taken: true },
    { path: `${MERCHANT_PATH}/`, taken: true },
    { path: `${MERCHANT_PATH}?tenant=7`, taken: true },
    { path: '/api/service/webhook-event/merchant%5Fupdated', taken: true },
    { path: `/behind/a/proxy${MERCHANT_PATH}`, taken: true },
  ])('$path is taken: $taken', async ({ path, taken }) => {
    const { port, handled } = await receive(binding)
    expect((await deliver(port, { path })).status).toBe(taken ? 200 : 418)
    expect(handled).toHaveLength(taken ? 1 : 0)
  })

  test('a request for another path goes on untouched, whatever its method', async () => {
    const { port, events } = await receive(binding)
    expect((await deliver(port, { method: 'GET', path: '/health' })).status).toBe(418)
    expect(events).toEqual([])
  })

  test('handle takes every type at one URL, of any path', async () => {
    const { port, handled } = await receive(binding, { mount: ({ handle }) => handle })
    expect((await deliver(port, { path: '/webhooks' })).status).toBe(200)
    expect((await deliver(port, { path: '/webhooks' })).header('idempotent-replayed')).toBe('true')
    const other = merchantUpdated({ type: 'other' })
    expect(problemIn(await deliver(port, { path: '/webhooks', body: other }))).toMatchObject({
      code: 'event_unhandled',
    })
    const got = await deliver(port, { method: 'GET', path: '/webhooks' })
    expect([got.status, got.header('allow')]).toEqual([405, 'POST'])
    expect(handled).toHaveLength(1)
  })

  test('the type counts: an id that comes again with another type is mismatched', async () => {
    const { port } = await receive(binding, { mount: ({ handle }) => handle, options: { onUnknownEvent: () => {} } })
    expect((await deliver(port, { body: merchantUpdated({ type: 'one' }) })).status).toBe(200)
    const other = await deliver(port, { body: merchantUpdated({ type: 'another' }) })
    expect(problemIn(other)).toMatchObject({ status: 409, code: 'mismatched' })
  })
})

describe.each(BINDINGS.filter(({ isExpress }) => isExpress))('on $name', (binding) => {
  const mounts = {
    'app.use(base, receiver)': (app: App, receiver: WebhookReceiver) => app.use('/hooks', receiver),
    'app.use(the whole path but the type, receiver)': (app: App, receiver: WebhookReceiver) =>
      app.use('/hooks/api/service/webhook-event', receiver),
    'app.post(path, receiver)': (app: App, receiver: WebhookReceiver) => app.post(`/hooks${MERCHANT_PATH}`, receiver),
    'app.post(path with a parameter, receiver)': (app: App, receiver: WebhookReceiver) =>
      app.post('/:base/api/service/webhook-event/:type', receiver),
  }

  test.each(Object.entries(mounts))('%s takes a delivery', async (_title, mount) => {
    const handled: string[] = []
    const receiver = webhookReceiver({
      store: new MemoryStore(),
      source: 'payments',
      verify: false,
      on: { merchant_updated: ({ id }) => void handled.push(id) },
    })
    const app = binding.listener([(_req, _res, next) => next()]) as unknown as App
    mount(app, receiver)
    const running = await listen(app as never)
    onTestFinished(running.close)
    expect((await deliver(running.port, { path: `/hooks${MERCHANT_PATH}` })).status).toBe(200)
    expect(handled).toEqual(['evt_1'])
  })
})

describe('on node:http without next', () => {
  async function serve(
    verify: () => boolean,
    onEvent?: (event: WebhookReceiverEvent) => void,
    next: (res: ServerResponse) => (() => void) | undefined = () => undefined,
  ) {
    const on = {
      merchant_updated() {
        throw new Error('the handler')
      },
    }
    const store = new MemoryStore()
    const receiver = webhookReceiver({ store, source: 'payments', verify, on, ...(onEvent && { onEvent }) })
    const running = await listen((req, res) => receiver(req, res, next(res)))
    onTestFinished(running.close)
    return running.port
  }

  const broken = () => {
    throw new Error('no keys')
  }

  test('handle is called as the method that it is', async () => {
    const receiver = webhookReceiver({
      store: new MemoryStore(),
      source: 'payments',
      verify: false,
      on: { merchant_updated: () => {} },
    })
    const running = await listen((req, res) => receiver.handle(req, res))
    onTestFinished(running.close)
    expect((await deliver(running.port, { path: '/webhooks' })).status).toBe(200)
  })

  test('another path is answered 404', async () => {
    expect(problemIn(await deliver(await serve(() => true), { path: '/' }))).toMatchObject({
      status: 404,
      code: 'path_unknown',
    })
  })

  test('misuse is answered 500, and is an event', async () => {
    const events: WebhookReceiverEvent[] = []
    const port = await serve(broken, (event) => events.push(event))
    expect(problemIn(await deliver(port))).toMatchObject({ status: 500, code: 'receiver_failed', shouldRetry: 'true' })
    expect(events).toEqual([{ type: 'receiver_failed', error: expect.objectContaining({ code: 'verify_failed' }) }])
  })

  test('so it is where `next` takes no error, and would acknowledge the delivery', async () => {
    const events: WebhookReceiverEvent[] = []
    const port = await serve(
      broken,
      (event) => events.push(event),
      (res) => () => void res.end('another page'),
    )
    expect(problemIn(await deliver(port))).toMatchObject({ status: 500, code: 'receiver_failed' })
    expect(events).toMatchObject([{ type: 'receiver_failed' }])
    expect((await deliver(port, { path: '/' })).body.toString()).toBe('another page')
  })

  test.each([
    { name: 'misuse', verify: broken, error: { code: 'verify_failed' } },
    { name: 'what a handler throws', verify: () => true, error: { message: 'the handler' } },
  ])('$name goes to console.error where no listener would hear of it', async ({ verify, error }) => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => log.mockRestore())
    expect((await deliver(await serve(verify))).status).toBe(500)
    expect(log.mock.calls).toEqual([[expect.objectContaining(error)]])
    log.mockClear()
    await deliver(await serve(verify, () => {}))
    expect(log).not.toHaveBeenCalled()
  })

  test('a listener that throws changes nothing', async () => {
    const port = await serve(
      () => true,
      () => {
        throw new Error('the listener')
      },
    )
    expect(problemIn(await deliver(port))).toMatchObject({ status: 500, code: 'handler_failed' })
  })
})

test('a response that somebody else has begun is left alone', async () => {
  const late: Step = (_req, res, next) => {
    res.statusCode = 503
    res.end('a time limit')
    next()
  }
  const [express5] = BINDINGS as [(typeof BINDINGS)[0]]
  const { port, seen, errors } = await receive(express5, { before: [late] })
  const reply = await deliver(port)
  expect([reply.status, reply.body.toString()]).toEqual([503, 'a time limit'])
  await seen('completed')
  expect(errors).toEqual([])
})

interface App {
  use(path: string, step: unknown): void
  post(path: string, step: unknown): void
}
