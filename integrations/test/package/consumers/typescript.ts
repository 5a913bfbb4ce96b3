import { once as event } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type IdempotencyContext, IdempotencyError, type IdempotencyEvent, idempotency } from 'once-per-key'
import { IdempotencyError as CoreError, machine, type Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { storeLaws } from 'once-per-key/testing'

interface Shop extends IncomingMessage {
  shop?: string
  idempotency?: IdempotencyContext
}

async function main(): Promise<void> {
  const events: IdempotencyEvent['type'][] = []
  const store: Store = new MemoryStore({ maxEntries: 10 })
  const once = idempotency<Shop>({ store, scope: (req) => req.shop, onEvent: ({ type }) => events.push(type) })
  const server = createServer((req: Shop, res) => {
    req.shop = 'acme'
    once(req, res, () => res.end(String(req.idempotency?.attempt)))
  })
  await event(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/payouts`
  const replies: string[] = []
  for (const _ of ['first', 'retry']) {
    const response = await fetch(url, { method: 'POST', headers: { 'Idempotency-Key': 'order 7' } })
    replies.push(`${response.status} ${await response.text()} ${response.headers.get('Idempotent-Replayed')}`)
  }
  server.closeAllConnections()
  server.close()

  const laws: string[] = []
  storeLaws(
    (name: string) => laws.push(name),
    async () => ({ store: new MemoryStore() }),
  )
  const seen = {
    replies,
    events,
    laws: laws.length > 0,
    errorIsOneClass: IdempotencyError === CoreError,
    machine: typeof machine.begin,
  }
  console.log(JSON.stringify(seen))
}

void main()
