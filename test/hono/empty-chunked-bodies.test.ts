import { bodyField } from 'once-per-key/hono'
import { expect, test } from 'vitest'
import { serveHono } from '../bindings/served.js'
import { connectTo, request } from '../support/raw-client.js'

// A proxy that does not know the length announces a chunked body, and it may be empty. That was taken for a body that somebody had
// read, so the client got 500.

const TYPES = ['application/json', 'application/x-www-form-urlencoded', 'text/plain', '']

test.each(TYPES)('a chunked body without bytes is an empty one: "%s"', async (type) => {
  const { port, events } = await serveHono({
    routes: (app) => app.post('/', async (c) => c.text(await c.req.text(), 201)),
  })
  expect(await post(port, 'k', type)).toBe(201)
  expect(await post(port, 'k', type)).toBe(201)
  expect(events.map((event) => event.type)).toEqual(['claimed', 'completed', 'replayed'])
})

test('it is the same request as one without a body', async () => {
  const { port, events } = await serveHono({ routes: (app) => app.post('/', (c) => c.text('paid', 201)) })
  await post(port, 'k', 'application/json')
  await request(port, { key: 'k' })
  expect(events.map((event) => event.type)).toEqual(['claimed', 'completed', 'replayed'])
})

test('nor does it hide a key', async () => {
  const legacyKey = bodyField('idempotencyKey', { deprecatedSince: new Date(0) })
  const { port } = await serveHono({
    options: { legacyKey },
    routes: (app) => app.post('/', (c) => c.text('paid', 201)),
  })
  expect(await post(port, undefined, 'application/json')).toBe(201)
})

async function post(port: number, key: string | undefined, type: string): Promise<number> {
  const connection = connectTo(port)
  const headers = { 'Transfer-Encoding': 'chunked', ...(type !== '' && { 'Content-Type': type }) }
  connection.send({ ...(key !== undefined && { key }), headers })
  connection.socket.write('0\r\n\r\n')
  try {
    return (await connection.reply()).status
  } finally {
    connection.socket.destroy()
  }
}
