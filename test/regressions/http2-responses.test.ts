import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { idempotency, singleTenant } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { expect, onTestFinished, test } from 'vitest'

// A response that cannot be held, such as one of HTTP/2, threw between the claim and the handler: the key stayed in flight,
// with its lease renewed for nobody, until `maxRunMs` was over.

test('a response of HTTP/2 is misuse, passed to next, and its key is free', async () => {
  const errors: unknown[] = []
  const types: string[] = []
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant, onEvent: ({ type }) => types.push(type) })
  const server = http2.createServer((req, res) => {
    once(req as never, res as never, (error) => {
      errors.push(error)
      res.statusCode = error === undefined ? 200 : 500
      res.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, resolve))
  const client = http2.connect(`http://localhost:${(server.address() as AddressInfo).port}`)
  onTestFinished(() => {
    client.destroy()
    server.close()
  })
  const pay = (headers: object): Promise<number | undefined> =>
    new Promise((resolve) => {
      const stream = client.request({ ':method': 'POST', ':path': '/', ...headers })
      stream.on('response', ({ ':status': status }) => resolve(status))
      stream.end()
    })

  expect(await pay({ 'idempotency-key': 'k' })).toBe(500)
  expect(await pay({ 'idempotency-key': 'k' })).toBe(500)
  await once.idle()
  expect(types).toEqual(['claimed', 'failed', 'claimed', 'failed'])
  expect(errors).toEqual(Array(2).fill(expect.objectContaining({ code: 'response_unsupported' })))

  expect(await pay({})).toBe(200)
})
