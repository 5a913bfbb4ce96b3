// What each consumer does with the entries that it loaded: a server on node:http, one request and its retry, the laws.
const { createServer } = require('node:http')
const { once: event } = require('node:events')

module.exports = async function exercise({ manifest, ...entries }) {
  const { face, core, memory, testing, webhooks } = entries
  let runs = 0
  const once = face.idempotency({ store: new memory.MemoryStore(), scope: face.singleTenant })
  const server = createServer((req, res) => {
    once(req, res, (error) => {
      runs += 1
      res.writeHead(error ? 500 : 201, { 'Content-Type': 'application/json' })
      res.end(JSON.stringify({ run: runs, attempt: req.idempotency?.attempt }))
    })
  })
  await event(server.listen(0, '127.0.0.1'), 'listening')
  const first = await post(server.address().port)
  const retry = await post(server.address().port)
  server.closeAllConnections()
  server.close()
  await once.idle()

  return {
    name: manifest.name,
    first,
    retry,
    errorIsOneClass: face.IdempotencyError === core.IdempotencyError,
    memoryError: errorOf(() => new memory.MemoryStore({ maxBytes: -1 }), face.IdempotencyError),
    receiverError: errorOf(() => webhooks.webhookReceiver({}), face.IdempotencyError),
    event: await received(webhooks, memory),
    engineError: errorOf(() => core.createEngine({}), face.IdempotencyError),
    laws: await lawsOf(testing, memory),
    names: Object.fromEntries(Object.entries(entries).map(([entry, exports]) => [entry, namesOf(exports)])),
  }
}

async function received({ webhookReceiver }, { MemoryStore }) {
  let runs = 0
  const on = { merchant_updated: () => (runs += 1) }
  const receiver = webhookReceiver({ store: new MemoryStore(), source: 'payments', verify: false, on })
  const server = createServer((req, res) => receiver(req, res))
  await event(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${server.address().port}/api/service/webhook-event/merchant_updated`
  const body = JSON.stringify({ id: 'evt_1', type: 'merchant_updated', date: 'today', payload: {} })
  const deliver = () => fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
  const statuses = [(await deliver()).status, (await deliver()).status]
  server.closeAllConnections()
  server.close()
  await receiver.idle()
  return { statuses, runs }
}

async function post(port) {
  const headers = { 'Idempotency-Key': 'order 7' }
  const response = await fetch(`http://127.0.0.1:${port}/payouts`, { method: 'POST', headers })
  return { status: response.status, replayed: response.headers.get('Idempotent-Replayed'), body: await response.text() }
}

function errorOf(act, IdempotencyError) {
  try {
    act()
  } catch (error) {
    return { isInstance: error instanceof IdempotencyError, code: error.code }
  }
  return null
}

async function lawsOf({ storeLaws }, { MemoryStore }) {
  const laws = []
  storeLaws(
    (name, fn) => laws.push({ name, fn }),
    async () => {
      let now = 0
      return { store: new MemoryStore({ now: () => now }), advance: (ms) => (now += ms) }
    },
  )
  const broken = []
  for (const { name, fn } of laws) {
    try {
      await fn()
    } catch (error) {
      broken.push(`${name}: ${error.message}`)
    }
  }
  return { some: laws.length > 0, broken }
}

function namesOf(exports) {
  return Object.keys(exports)
    .filter((name) => name !== '__esModule')
    .sort()
}
