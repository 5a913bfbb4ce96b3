import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { MemoryStore } from 'once-per-key/memory'
import { webhookReceiver } from 'once-per-key/webhooks'
import { expect, onTestFinished, test, vi } from 'vitest'

// A response of HTTP/2 has no raw header names: where a delivery was answered as held responses are, sending threw, the sender
// heard nothing, and the rejection ended the process.

test('a delivery over HTTP/2 is handled, and a repeat and a refusal are answered, without a warning', async () => {
  const warned = vi.spyOn(process, 'emitWarning')
  onTestFinished(() => warned.mockRestore())
  const receiver = webhookReceiver({
    store: new MemoryStore(),
    source: 'payments',
    verify: false,
    onEvent: () => {},
    parse: (raw) => JSON.parse(String(raw)) as { id: string; type: string; payload: unknown },
    on: { paid: () => {} },
  })
  const server = http2.createServer((req, res) => receiver(req as never, res as never))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const client = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  onTestFinished(() => {
    client.destroy()
    server.close()
  })
  const deliver = (body: string) => {
    const stream = client.request({ ':method': 'POST', ':path': '/' })
    stream.end(body)
    return new Promise<{ status: number | undefined; body: string }>((resolve) => {
      stream.on('response', async ({ ':status': status }) => resolve({ status, body: await text(stream) }))
    })
  }

  const event = JSON.stringify({ id: 'evt_1', type: 'paid', payload: {} })
  expect([await deliver(event), await deliver(event)]).toEqual(Array(2).fill({ status: 200, body: '' }))
  const refused = await deliver('nothing that can be read')
  expect([refused.status, JSON.parse(refused.body).code]).toEqual([400, 'body_malformed'])
  await receiver.idle()
  expect(warned).not.toHaveBeenCalled()
})
