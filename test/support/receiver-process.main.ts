// A receiver of webhook events in a process of its own. Its settings come as an argument; its runs are read at `/runs`.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { RedisStore } from 'once-per-key/redis'
import { webhookReceiver } from 'once-per-key/webhooks'
import { LIBRARIES } from './default-clients.js'
import type { Run, Settings } from './receiver-process.js'

const settings: Settings = JSON.parse(process.argv[2] ?? '')
const library = LIBRARIES.find(({ name }) => name === settings.library)
if (library === undefined) throw new Error(`No library of this name: ${settings.library}`)
const { client } = await library.open(settings.redisPort)

const runs: Run[] = []
let open = () => {}
const opened = new Promise<void>((resolve) => {
  open = resolve
})

const receiver = webhookReceiver({
  store: new RedisStore({ client }),
  source: 'payments',
  verify: false,
  // No fault here is one of time: a busy machine must not look like one.
  storeTimeoutMs: 7_500,
  on: {
    async merchant_updated({ id, payload }, { attempt, previousOutcome }) {
      if (payload.category === 'waits') {
        process.send?.({ type: 'waits' })
        await opened
      }
      const outcome = payload.category === 'throws first' && attempt === 1 ? 'threw' : 'succeeded'
      runs.push({ id, attempt, previousOutcome, outcome })
      if (outcome === 'threw') throw new Error('as the event asked')
    },
  },
  onEvent: () => {},
})

const server = createServer((req, res) => {
  receiver(req, res, (error) => {
    res.statusCode = error === undefined ? 200 : 599
    res.end(JSON.stringify(runs))
  })
}).listen(0, '127.0.0.1', () => {
  process.send?.({ type: 'listening', port: (server.address() as AddressInfo).port })
})
process.on('message', () => open())
