import { once } from 'node:events'
import { createServer, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createRequestEngine, singleTenant } from 'once-per-key/http'
import { runner } from 'once-per-key/run'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { NodeFacts } from '../../../../src/node/hold.js'
import { gate } from '../../../support/gate.js'
import { requestFacts } from '../../../support/request-facts.js'
import { onDatabase } from './served.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

// Who waits for another attempt does so inside its own transaction, since nothing was claimed before.

const { store, insert, effects, query } = await onDatabase()
beforeEach(() => query('TRUNCATE once_per_key.records, effects'))

const WAITS = { store, effects: 'in-transaction', inFlightWaitMs: 120_000, onEvent() {} } as const

test('a runner waits no longer than its signal says, and throws the reason', async () => {
  const operation = { scope: 'acme', key: '1', input: null }
  const [one, other] = [runner({ ...WAITS, name: 'jobs' }), runner({ ...WAITS, name: 'jobs' })]
  const [entered, goOn, asked] = [gate(), gate(), gate()]
  const first = one(operation, (context) =>
    store.transaction(context, async (tx) => {
      await insert(tx)
      entered.open()
      await goOn.opened
      return 'first'
    }),
  )
  await entered.opened
  const caller = new AbortController()
  const second = other({ ...operation, signal: caller.signal }, (context) => {
    asked.open()
    return store.transaction(context, (tx) => insert(tx, 'e2').then(() => 'second'))
  }).catch((error) => error)
  await asked.opened
  const reason = new Error('The worker shuts down.')
  caller.abort(reason)
  expect(await second).toBe(reason)
  goOn.open()
  expect(await first).toBe('first')
  expect(await effects()).toEqual(['e1'])
})

test('a request waits no longer than its client', async () => {
  const options = { ...WAITS, scope: singleTenant }
  const [one, other] = [createRequestEngine(options), createRequestEngine(options)]
  let hasLeft = false
  const [first, second] = [
    await one.decide(requestFacts()),
    await other.decide(requestFacts({ isAbandoned: () => hasLeft })),
  ]
  if (first.action !== 'execute' || second.action !== 'execute') throw new Error('Nobody has the key.')
  const [entered, goOn] = [gate(), gate()]
  const owner = store
    .transaction(first.run.context, async (tx) => {
      await insert(tx)
      entered.open()
      await goOn.opened
      throw new Error('It fails.')
    })
    .catch((error) => error)
  await entered.opened
  const waiting = store.transaction(second.run.context, (tx) => insert(tx, 'e2')).catch((error) => error)
  hasLeft = true
  expect(await waiting).toMatchObject({ code: 'operation_taken' })
  goOn.open()
  await owner
  await Promise.all([first.run.fail(), second.run.fail(), one.idle(), other.idle()])
  expect(await effects()).toEqual([])
})

// As behind Nest: while the response is held, `req.socket` is a view that outlives the client.
test('a client that has left is seen behind a view of its socket', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = request({ host: '127.0.0.1', port, method: 'POST' }).on('error', () => {})
  client.end()
  const [req] = (await once(server, 'request')) as [ServerResponse['req'], ServerResponse]
  const facts = new NodeFacts(req, req, '/', null)
  const { socket } = req
  req.socket = new Proxy(socket, { get: (of, name) => (name === 'destroyed' ? false : Reflect.get(of, name)) })
  expect(facts.isAbandoned()).toBe(false)
  client.destroy()
  await once(socket, 'close')
  expect(facts.isAbandoned()).toBe(true)
})
