import { Buffer } from 'node:buffer'
import type { ParsedEvent, WebhookContext } from 'once-per-key/webhooks'
import { describe, expect, test } from 'vitest'
import { BINDINGS, type Step } from '../support/bindings.js'
import { deliver, receive, type Setting } from '../support/deliveries.js'
import { failingStore } from '../support/failing-store.js'
import { problemIn } from './problem-in.js'

/** A sender that counts its tries in the body, and names the event in headers. */
const parse = (raw: Buffer, headers: NodeJS.Dict<string | string[]>): ParsedEvent => ({
  id: headers['x-id'] as string,
  type: headers['x-type'] as string,
  payload: JSON.parse(raw.toString()),
})

interface Sent {
  readonly id?: string
  readonly type?: string
  readonly body?: unknown
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
}

const delivery = ({
  id = 'd_1',
  type = 'paid',
  body = { amount: 1, tries: 1 },
  path = '/hook',
  headers,
  method,
}: Sent) => ({
  path,
  body,
  ...(method && { method }),
  headers: { 'X-Id': id, 'X-Type': type, ...headers },
})

const [express5] = BINDINGS as [(typeof BINDINGS)[0]]

/** A receiver of this sender's events; `handled` is what its one handler was given. */
async function start(setting: Setting = {}, binding = express5) {
  const handled: { readonly event: ParsedEvent; readonly context: WebhookContext }[] = []
  const on = { paid: (event: ParsedEvent, context: WebhookContext) => void handled.push({ event, context }) }
  const receiving = await receive(binding, { ...setting, options: { parse, on, ...setting.options } })
  return { ...receiving, handled, send: (sent: Sent = {}) => deliver(receiving.port, delivery(sent)) }
}

describe.each(BINDINGS)('on $name', (binding) => {
  test('an event of any sender is handled once, whatever its path and content type', async () => {
    const { send, handled, events } = await start({}, binding)
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
    expect((await send({ path: '/anywhere?x=1', headers })).status).toBe(200)
    expect((await send()).header('idempotent-replayed')).toBe('true')
    expect(handled.map(({ event }) => event)).toEqual([{ id: 'd_1', type: 'paid', payload: { amount: 1, tries: 1 } }])
    expect(handled[0]?.context).toMatchObject({ source: 'payments', attempt: 1, previousOutcome: 'none' })
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'completed', 'replayed'])
  })

  test('a receiver that is mounted takes what reaches it, and `handle` takes the same', async () => {
    for (const mount of [undefined, (receiver: { handle: unknown }) => receiver.handle as Step]) {
      const { send, handled } = await start({ ...(mount && { mount }) }, binding)
      expect((await send({ path: '/api/service/webhook-event/other' })).status).toBe(200)
      expect(problemIn(await send({ method: 'GET' }))).toMatchObject({ status: 405, code: 'method_not_allowed' })
      expect(handled).toHaveLength(1)
    }
  })
})

describe('what makes two deliveries the same', () => {
  test('is the id alone, since senders change counters between tries', async () => {
    const { send, handled } = await start()
    await send()
    const other = await send({ body: { amount: 1, tries: 2 }, type: 'paid' })
    expect([other.status, other.header('idempotent-replayed')]).toEqual([200, 'true'])
    expect(handled).toHaveLength(1)
  })

  test('is what `parse` says it is, besides the id', async () => {
    const withFingerprint = (raw: Buffer, headers: NodeJS.Dict<string | string[]>) => {
      const event = parse(raw, headers)
      return { ...event, fingerprint: { amount: (event.payload as { amount: number }).amount } }
    }
    const { send, handled } = await start({ options: { parse: withFingerprint } })
    await send()
    expect((await send({ body: { amount: 1, tries: 2 } })).header('idempotent-replayed')).toBe('true')
    const other = await send({ body: { amount: 2, tries: 2 } })
    expect(problemIn(other)).toMatchObject({ status: 409, code: 'mismatched' })
    expect(handled).toHaveLength(1)
  })

  test('may be null, a string or bytes, and none of them is another', async () => {
    const seen = new Set<string>()
    for (const fingerprint of [null, '', 'a', Buffer.from('b'), 1, [], {}]) {
      const store = failingStore()
      const { send } = await start({ options: { store, parse: (...sent) => ({ ...parse(...sent), fingerprint }) } })
      await send()
      const [{ terms } = { terms: {} }] = store.sent
      seen.add((terms as { fingerprint: string }).fingerprint)
    }
    expect(seen.size).toBe(7)
  })

  test('that has no form to compare is misuse', async () => {
    const { send, errors } = await start({
      options: { parse: (...sent) => ({ ...parse(...sent), fingerprint: new Map() }) },
    })
    expect((await send()).status).toBe(500)
    expect(errors).toMatchObject([{ code: 'fingerprint_required' }])
  })
})

describe('an event of a type without a handler', () => {
  test('is acknowledged, with an event, and nothing is stored', async () => {
    const store = failingStore()
    const { send, events, handled } = await start({ options: { store } })
    for (let i = 0; i < 2; i++) expect((await send({ type: 'refunded' })).status).toBe(200)
    const ignored = { type: 'ignored', source: 'payments', eventId: 'd_1', eventType: 'refunded' }
    expect(events).toEqual([ignored, ignored])
    expect({ handled, sent: store.sent }).toEqual({ handled: [], sent: [] })
  })

  test('is told with no more of its id and its type than fits into a line', async () => {
    const endless = 'x'.repeat(1_000)
    const { send, events } = await start()
    expect((await send({ id: endless, type: endless })).status).toBe(200)
    expect(events).toMatchObject([{ type: 'ignored', eventId: 'x'.repeat(255), eventType: 'x'.repeat(255) }])
  })

  test('reaches `onUnknownEvent`, once', async () => {
    const seen: string[] = []
    const { send, events } = await start({
      options: { onUnknownEvent: ({ type }: ParsedEvent) => void seen.push(type) },
    })
    for (let i = 0; i < 2; i++) expect((await send({ type: 'refunded' })).status).toBe(200)
    expect(seen).toEqual(['refunded'])
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'completed', 'replayed'])
  })

  test.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])(
    'runs nothing that every object has: %s',
    async (type) => {
      const { send, events, errors } = await start()
      expect((await send({ type })).status).toBe(200)
      expect(events).toMatchObject([{ type: 'ignored', eventType: type }])
      expect(errors).toEqual([])
    },
  )
})

describe('parse', () => {
  test('sees the bytes as they were sent, and may take its time', async () => {
    const bytes = Buffer.from([0, 255, 1])
    let seen: Buffer | undefined
    const later = async (raw: Buffer) => {
      seen = raw
      return { id: 'd_1', type: 'paid', payload: null, more: true }
    }
    const { port, handled } = await start({ options: { parse: later } })
    expect((await deliver(port, delivery({ body: bytes }))).status).toBe(200)
    expect(seen?.equals(bytes)).toBe(true)
    expect(handled[0]?.event).toEqual({ id: 'd_1', type: 'paid', payload: null, more: true })
  })

  test('is asked only for what is verified', async () => {
    let asked = 0
    const counting = (...sent: Parameters<typeof parse>) => {
      asked++
      return parse(...sent)
    }
    const { send } = await start({ options: { parse: counting, verify: () => false } })
    expect((await send()).status).toBe(401)
    expect(asked).toBe(0)
  })

  test.each([
    { name: 'JSON.parse', body: '{"amount":', expected: { status: 400, code: 'body_malformed' }, told: {} },
    {
      name: 'no id',
      sent: { id: '' },
      expected: { status: 400, code: 'event_invalid' },
      told: {
        eventType: 'paid',
        issues: [{ path: 'id', message: 'expected a string that is not empty; seen: nothing' }],
      },
    },
    {
      name: 'no type',
      sent: { type: '' },
      expected: { status: 400, code: 'event_invalid' },
      told: { eventId: 'd_1', issues: [{ path: 'type', message: 'expected a string; seen: nothing' }] },
    },
  ])('refuses what the sender is to blame for: $name', async ({ body, sent, expected, told }) => {
    const store = failingStore()
    const { send, events, errors } = await start({ options: { store } })
    const reply = await send({ ...sent, ...(body && { body }) })
    expect(problemIn(reply)).toMatchObject({ ...expected, shouldRetry: 'false' })
    expect(events).toEqual([{ type: 'rejected', code: expected.code, source: 'payments', ...told }])
    expect({ sent: store.sent, errors }).toEqual({ sent: [], errors: [] })
  })

  test.each([
    ['', 'an empty string'],
    ['a\ud800', 'a string with a lone surrogate'],
    [7, 'a number'],
  ])('answers an id that can name nothing (%j): 400, which says what was seen', async (id, seen) => {
    const { send } = await start({ options: { parse: (...sent) => ({ ...parse(...sent), id: id as string }) } })
    const reply = await send()
    expect(problemIn(reply)).toMatchObject({ status: 400, code: 'event_invalid' })
    expect(reply.json()).toMatchObject({ errors: [{ path: 'id', message: expect.stringMatching(`seen: ${seen}$`) }] })
  })

  test('throws an error with issues, as schemas do: 400, and its sender is told what is wrong', async () => {
    const issues = [{ path: ['data', 0, { key: 'amount' }], message: 'expected a number' }, { message: 'too old' }]
    const strict = () => {
      throw Object.assign(new Error('invalid'), { issues })
    }
    const { send, events } = await start({ options: { parse: strict } })
    const told = [
      { path: 'data[0].amount', message: 'expected a number' },
      { path: '', message: 'too old' },
    ]
    expect((await send()).json()).toMatchObject({ code: 'event_invalid', errors: told })
    expect(events).toEqual([{ type: 'rejected', code: 'event_invalid', source: 'payments', issues: told }])
  })

  test.each([
    {
      name: 'throws',
      broken: () => {
        throw new TypeError('data is undefined')
      },
      message: /^parse\(\) failed[.: ]/,
    },
    { name: 'rejects', broken: () => Promise.reject(new Error('no keys')), message: /^parse\(\) failed[.: ]/ },
    { name: 'throws nothing', broken: () => Promise.reject(undefined), message: /^parse\(\) failed[.: ]/ },
    { name: 'answers nothing', broken: () => undefined, message: /^parse\(\) returned undefined\./ },
    { name: 'answers text', broken: () => 'd_1', message: /^parse\(\) returned a string\./ },
  ])('that $name is misuse, passed to next: nothing runs, nothing is stored', async ({ broken, message }) => {
    const store = failingStore()
    const { send, handled, errors, events } = await start({ options: { store, parse: broken as never } })
    expect((await send()).body.toString()).toBe('the application')
    expect(errors).toEqual([expect.objectContaining({ code: 'parse_failed', message: expect.stringMatching(message) })])
    expect({ handled, sent: store.sent, events }).toEqual({ handled: [], sent: [], events: [] })
  })
})
