import { ServerResponse } from 'node:http'
import { idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { webhookReceiver } from 'once-per-key/receiver'
import { describe, expect, test } from 'vitest'

// Doubles of tests have only what their test needs. Where `rawHeaders` or `headers` was missing, each request ended in a TypeError.

const REQUESTS = [
  { lacks: 'lines', req: { headers: {}, body: {} } },
  { lacks: 'headers', req: { rawHeaders: [], body: {} } },
  { lacks: 'everything', req: {} },
]

/** Of the kind that runners' mock functions make. */
const RESPONSES = [
  { kind: 'with one function', response: () => ({ setHeader() {} }) },
  { kind: 'made from the prototype of Node’s own', response: () => Object.create(ServerResponse.prototype) as object },
]

describe.each(RESPONSES)('a response $kind', ({ response }) => {
  function protection(options: { readonly required?: boolean } = {}) {
    const events: string[] = []
    const onEvent = ({ type }: { type: string }) => void events.push(type)
    const once = idempotency({ store: new MemoryStore(), scope: () => 'acme', ...options, onEvent })
    const pass = (req: object) =>
      new Promise<unknown>((resolve) =>
        once({ method: 'POST', url: '/payouts', ...req } as never, response() as never, resolve),
      )
    return { events, pass }
  }

  test.each(REQUESTS)('passes to the handler of a request that lacks $lacks, without a key', async ({ req }) => {
    const { pass, events } = protection()
    expect([await pass(req), events]).toEqual([undefined, []])
  })

  test('is unsupported with a key, and the key is free', async () => {
    const { pass, events } = protection()
    const keyed = { headers: { 'idempotency-key': 'order-1' }, body: {} }
    expect(await pass(keyed)).toMatchObject({ code: 'response_unsupported' })
    expect(await pass(keyed)).toMatchObject({ code: 'response_unsupported' })
    expect(events).toEqual(['claimed', 'failed', 'claimed', 'failed'])
  })
})

test('a response without the functions that send one is unsupported, where the library would answer', async () => {
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme', required: true, onEvent() {} })
  const req = { method: 'POST', url: '/payouts', headers: {} }
  const error = await new Promise<unknown>((resolve) => once(req as never, { setHeader() {} } as never, resolve))
  expect(error).toMatchObject({ code: 'response_unsupported' })
})

test.each(REQUESTS)('a webhook receiver reads no body of a request that lacks $lacks: misuse', async ({ req }) => {
  const receiver = webhookReceiver({
    store: new MemoryStore(),
    source: 'test',
    verify: false,
    parse: () => expect.unreachable('It is parsed.'),
    on: {},
  })
  const error = await new Promise<unknown>((resolve) =>
    receiver({ method: 'POST', url: '/hook', ...req } as never, { setHeader() {} } as never, resolve),
  )
  expect(error).toMatchObject({ code: 'raw_body_consumed' })
})
