import { createHmac } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { MemoryStore } from 'once-per-key/memory'
import { hmacSha256, webhookReceiver } from 'once-per-key/receiver'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { decorate, PLACES } from './serve-nest.js'

const SECRET = 'a secret of thirty-two characters'

describe.each(PLACES.filter(({ platform }) => platform === 'Express'))('$place', ({ nest }) => {
  const { common, NestFactory } = nest

  test('a receiver in a method verifies the bytes that `rawBody: true` keeps, and handles an event once', async () => {
    const paid = vi.fn(async () => {})
    const receiver = webhookReceiver({
      store: new MemoryStore(),
      source: 'billing',
      verify: hmacSha256({ header: 'x-signature', secrets: [SECRET] }),
      parse: (raw) => JSON.parse(raw.toString()),
      on: { 'invoice.paid': paid },
    })
    class Webhooks {
      billing(req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void): void {
        receiver(req, res, next)
      }
    }
    common.Controller('webhooks')(Webhooks)
    decorate(Webhooks, 'billing', [common.Post('billing')], [common.Req(), common.Res(), common.Next()])
    class Root {}
    common.Module({ controllers: [Webhooks] })(Root)
    const app = await NestFactory.create(Root, { rawBody: true, logger: false })
    await app.listen(0, '127.0.0.1')
    onTestFinished(() => app.close())

    const { port } = app.getHttpServer().address() as AddressInfo
    const body = '{ "id": "e1", "type": "invoice.paid", "payload": {} }'
    const deliver = async (signed = body) => {
      const signature = createHmac('sha256', SECRET).update(signed).digest('hex')
      const headers = { 'Content-Type': 'application/json', 'X-Signature': signature }
      return (await fetch(`http://127.0.0.1:${port}/webhooks/billing`, { method: 'POST', headers, body })).status
    }
    expect(await deliver('{}')).toBe(401)
    expect([await deliver(), await deliver()]).toEqual([200, 200])
    expect(paid).toHaveBeenCalledTimes(1)
  })
})
