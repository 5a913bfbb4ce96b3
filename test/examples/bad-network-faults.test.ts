import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { choicesOf } from '../../examples/bad-network/choices.js'
import { sendOnce } from '../../examples/bad-network/network.js'
import type { NetworkFault } from '../../examples/bad-network/plan.js'
import { freePort } from '../support/redis-server.js'

const BODY = JSON.stringify({ amount: 100, currency: 'EUR' })

test('without a fault the reply is read, and the request says how long to take', async () => {
  const { url, whole, first } = await service((_req, res) => res.writeHead(201).end('made'))
  const { reply, struck } = await send(url, undefined, 50)
  expect([reply?.status, `${reply?.body}`, struck]).toEqual([201, 'made', false])
  expect(whole).toEqual([BODY])
  expect(await first).toMatchObject({ 'x-demo-delay-ms': '50' })
})

test.each(Array.from({ length: 8 }, (_, i) => i))('cut off: what arrives is never whole (%i)', async (seed) => {
  const { url, whole, parts } = await service((_req, res) => res.end())
  expect(await send(url, 'cutOff', 0, seed)).toEqual({ reply: null, struck: true })
  await send(url, undefined)
  await Promise.all(parts)
  expect(whole).toEqual([BODY])
})

test('hung up: the whole request arrives, and nobody waits for the answer', async () => {
  const { url, whole, first } = await service((_req, res) => res.end())
  expect(await send(url, 'hungUp')).toEqual({ reply: null, struck: true })
  await first
  expect(whole).toEqual([BODY])
})

test('answer lost: the service has answered, and the client does not know what', async () => {
  const { url, whole } = await service((_req, res) => res.writeHead(201).end('made'))
  expect(await send(url, 'answerLost')).toEqual({ reply: null, struck: true })
  expect(whole).toEqual([BODY])
})

test.each(['timedOut', 'ownerLost'] as const)('%s: a client that is not answered gives up', async (fault) => {
  const { url, whole, first } = await service(() => {})
  expect(await send(url, fault)).toEqual({ reply: null, struck: true })
  expect(whole).toEqual([BODY])
  expect((await first)['x-demo-crash']).toBe(fault === 'ownerLost' ? 'true' : undefined)
})

test.each(['timedOut', 'ownerLost'] as const)('%s does not count where an answer came first', async (fault) => {
  const { url } = await service((_req, res) => res.writeHead(201).end('made'))
  const { reply, struck } = await send(url, fault)
  expect([reply?.status, struck]).toEqual([201, false])
})

test.each(['cutOff', 'hungUp', 'answerLost', 'timedOut', 'ownerLost', undefined] as const)(
  '%s does not count where nobody listens',
  async (fault) => {
    const url = `http://127.0.0.1:${await freePort()}`
    expect(await send(url, fault)).toEqual({ reply: null, struck: false })
  },
)

function send(url: string, fault: NetworkFault | undefined, delayMs = 0, seed = 1) {
  return sendOnce({ url, headers: {}, body: BODY }, { delayMs, ...(fault && { fault }) }, choicesOf(seed, 'a test'))
}

/** Answers whole requests. `whole`: their bodies. `parts`: when each request has ended, in full or not. */
async function service(answer: RequestListener) {
  const whole: string[] = []
  const parts: Promise<unknown>[] = []
  let tell: (headers: object) => void = () => {}
  const first = new Promise<Record<string, unknown>>((resolve) => {
    tell = (headers) => resolve({ ...headers })
  })
  const server = createServer((req, res) => {
    const read = text(req).then((body) => {
      whole.push(body)
      tell(req.headers)
      answer(req, res)
    })
    parts.push(read.catch(() => {}))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, whole, parts, first }
}
