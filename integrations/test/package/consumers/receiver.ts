// A receiver as for Stripe: it compiles and starts where zod is not installed.
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { MemoryStore } from 'once-per-key/memory'
import { hmacSha256, webhookReceiver } from 'once-per-key/receiver'

type StripeEvent =
  | { id: string; type: 'invoice.paid'; payload: { total: number } }
  | { id: string; type: 'invoice.voided'; payload: { reason: string } }

const secret = 'a secret that both know'
const totals: number[] = []

const receiver = webhookReceiver({
  store: new MemoryStore(),
  source: 'stripe',
  verify: hmacSha256({ header: 'Stripe-Signature', prefix: 'v1=', secrets: [secret] }),
  parse: (raw): StripeEvent => {
    const { id, type, data } = JSON.parse(raw.toString())
    return { id, type, payload: data.object }
  },
  on: { 'invoice.paid': ({ payload }) => totals.push(payload.total) },
})

// @ts-expect-error this receiver has no format of its own: `parse` is required
const withoutParse = () => webhookReceiver({ store: new MemoryStore(), source: 'a', verify: false, on: {} })
let refusal = ''
try {
  withoutParse()
} catch (error) {
  refusal = String((error as Error).message.match(/parse: .*/)?.[0])
}

async function deliver(port: number, event: object): Promise<number> {
  const body = JSON.stringify(event)
  const signature = createHmac('sha256', secret).update(body).digest('hex')
  const headers = { 'Stripe-Signature': `v1=${signature}` }
  return (await fetch(`http://127.0.0.1:${port}/stripe`, { method: 'POST', headers, body })).status
}

async function main(): Promise<void> {
  const server = createServer((req, res) => receiver(req, res))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const paid = { id: 'evt_1', type: 'invoice.paid', data: { object: { total: 9900 } } }
  const statuses = [await deliver(port, paid), await deliver(port, { ...paid, pending_webhooks: 2 })]
  server.closeAllConnections()
  server.close()
  await receiver.idle()
  console.log(JSON.stringify({ statuses, totals, refusal }))
}

void main()
