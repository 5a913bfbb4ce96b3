import type { IncomingMessage } from 'node:http'
import { describe, expect, test } from 'vitest'
import type { Framework, Handler } from './framework.js'
import { FRAMEWORKS } from './frameworks/index.js'
import { type Sent, type Setting, serve } from './serve.js'

// A key that code in front had put into `req.headers` was seen behind Hono alone. Elsewhere the request passed as one without a key, and
// each try ran the handler.

const paid: Handler = ({ idempotency }) => ({ status: 201, json: { key: idempotency?.key ?? null } })
const ON_NODES_REQUESTS = FRAMEWORKS.filter(({ readsBodies = false }) => !readsBodies)

/** Serves behind code that puts a value into `req.headers`, before the framework has seen the request. */
async function serveBehind(framework: Framework, name: string, value: unknown, setting: Setting = {}) {
  const serving = await serve(framework, paid, setting)
  serving.server.prependListener('request', ({ headers }: IncomingMessage) => {
    Object.assign(headers, { [name]: headers[name] ?? value })
  })
  const pay = async (sent: Sent = { key: null }) => {
    const reply = await serving.send(sent)
    return [reply.status, reply.json(), reply.header('Idempotent-Replayed') === 'true']
  }
  return { ...serving, pay }
}

describe.each(ON_NODES_REQUESTS)('on $name', (framework) => {
  test.each([
    { what: 'a key', name: 'idempotency-key', value: 'order-1', key: 'order-1' },
    { what: 'one under a name in other letters', name: 'Idempotency-Key', value: 'order-1', key: 'order-1' },
    { what: 'one in quotes', name: 'idempotency-key', value: '"order-1"', key: 'order-1' },
    { what: 'one in a list', name: 'idempotency-key', value: ['order-1'], key: 'order-1' },
    { what: 'one with a comma', name: 'idempotency-key', value: 'order-1, part 2', key: 'order-1, part 2' },
    // On the wire, these two characters would be the bytes of "ä".
    { what: 'text of any language', name: 'idempotency-key', value: 'Ã¤ 注文', key: 'Ã¤ 注文' },
    { what: 'text that bytes could be', name: 'idempotency-key', value: 'Ã¤', key: 'Ã¤' },
  ])('$what that code in front has put into `req.headers` counts', async ({ name, value, key }) => {
    const { pay, runs } = await serveBehind(framework, name, value)
    expect([await pay(), await pay(), runs()]).toEqual([[201, { key }, false], [201, { key }, true], 1])
  })

  test('so does one under the name of the option `header`', async () => {
    const { pay, runs } = await serveBehind(framework, 'x-request-id', 'order-1', {
      options: { header: 'X-Request-Id' },
    })
    expect([await pay(), await pay(), runs()]).toMatchObject([[201, {}, false], [201, {}, true], 1])
  })

  test.each([
    { what: 'two values', value: ['order-1', 'order-2'], why: 'more than once' },
    { what: 'no text', value: 1001, why: 'it is a number, not a string' },
    { what: 'an empty text', value: '', why: 'empty' },
    { what: 'the word of a missing value', value: `${undefined}`, why: 'the word "undefined"' },
  ])('$what there is no key, and refused', async ({ value, why }) => {
    const { pay, runs } = await serveBehind(framework, 'idempotency-key', value)
    const refusal = { code: 'key_invalid', detail: expect.stringContaining(why) }
    expect([await pay(), runs()]).toEqual([[400, expect.objectContaining(refusal), false], 0])
  })

  test.each([{ value: undefined }, { value: null }, { value: [] }])(
    '$value there is no key, and passes',
    async ({ value }) => {
      const { pay, runs } = await serveBehind(framework, 'idempotency-key', value)
      expect([await pay(), await pay(), runs()]).toEqual([[201, { key: null }, false], [201, { key: null }, false], 2])
    },
  )

  test('a line that was received counts, whatever code in front makes of it', async () => {
    const { server, pay } = await serveBehind(framework, 'idempotency-key', 'put')
    expect(await pay({ key: 'sent' })).toEqual([201, { key: 'sent' }, false])
    server.prependListener('request', ({ headers }: IncomingMessage) => {
      headers['idempotency-key'] = 'replaced'
    })
    expect(await pay({ key: 'sent' })).toEqual([201, { key: 'sent' }, true])
    expect(await pay({ key: 'sent', headers: { 'Idempotency-key': 'twice' } })).toMatchObject([
      400,
      { code: 'key_invalid' },
      false,
    ])
  })
})
