import { once } from 'node:events'
import { request } from 'node:http'
import { json } from 'node:stream/consumers'
import { MemoryStore } from 'once-per-key/memory'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { createApp } from '../../examples/payments/app.js'
import { listen } from '../support/bindings.js'
import { type Service, startService } from './payments-service.js'

// A page of somebody else could let its own name lead to this machine, and was then, to the browser, of one origin with the
// example: it could read the page's data and send payments.

let service: Service

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.stop())

const PATHS = ['/', '/playground/main.js', '/health', '/operations', '/demo/feed?key=a', '/nowhere']

test.each([
  'evil.example',
  'localhost.evil.example',
  'evil-localhost',
  '127.0.0.1.evil.example',
  '[::1].evil.example',
  '',
])('a request for the host %j is refused, whatever it asks for', async (host) => {
  for (const path of PATHS) {
    const refused = await get(service.origin, path, `${host}:80`)
    expect([path, refused.status, refused.code]).toEqual([path, 421, 'host_unknown'])
  }
})

test.each(['localhost', 'LOCALHOST', 'app.localhost', '127.0.0.1', '192.0.2.7', '[::1]'])(
  'a request for %s is served, at any port',
  async (host) => {
    expect((await get(service.origin, '/health', host)).status).toBe(200)
    expect((await get(service.origin, '/health', `${host}:8080`)).status).toBe(200)
  },
)

test('a name that it was told to listen on is its own', async () => {
  const { app } = createApp({ store: new MemoryStore(), logger: pino({ level: 'silent' }), host: 'Payments.example' })
  const { port, close } = await listen(app)
  onTestFinished(close)
  const statusFor = async (host: string) => (await get(`http://127.0.0.1:${port}`, '/health', host)).status
  expect([await statusFor('payments.example'), await statusFor('other.example')]).toEqual([200, 421])
})

async function get(origin: string, path: string, host: string) {
  const headers = { host, authorization: 'Bearer demo_acme' }
  const sent = request(origin + path, { agent: false, headers }).end()
  const [response] = await once(sent, 'response')
  const code = response.statusCode === 421 ? ((await json(response)) as { code: string }).code : undefined
  response.destroy()
  return { status: response.statusCode as number, code }
}
