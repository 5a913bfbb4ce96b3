import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { afterEach, expect, test } from 'vitest'
import { payoutWork } from './payout.js'
import { probeOf } from './probe.js'
import { PROMISES } from './promises.js'
import type { Open } from './protection.js'
import { bare } from './protections/bare.js'
import { floorMemory } from './protections/floor-memory.js'
import { oursMemory } from './protections/ours.js'
import type { Service } from './service.js'
import type { StoppedOwner } from './stopped-owners.js'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp()
})

test('the memory store keeps every promise that applies to it', async () => {
  expect(await findBrokenPromises(oursMemory)).toEqual([])
})

test('an unprotected handler breaks what a retry needs', async () => {
  expect(await findBrokenPromises(bare)).toEqual([
    'another answer on replay',
    'loses headers on replay',
    'runs twice in a race',
    'takes another body for the same',
    'runs again for a client that hung up',
  ])
})

test('a handler that only looks for an earlier answer breaks what else protects', async () => {
  expect(await findBrokenPromises(floorMemory)).toEqual([
    'runs twice in a race',
    'takes another body for the same',
    "gives one merchant's answer to another",
    'a failure blocks the key',
  ])
})

test('what became of a stopped owner is said as it was seen', async () => {
  expect(await findBrokenPromises(oursMemory, { isFreed: false, isFenced: null })).toEqual(['a crash blocks the key'])
  expect(await findBrokenPromises(oursMemory, { isFreed: true, isFenced: false })).toEqual([
    'a late owner replaces the answer',
  ])
})

/** What is said of a protection, by all probes that apply. */
async function findBrokenPromises(open: Open, stopped?: StoppedOwner): Promise<string[]> {
  const broken: string[] = []
  for (const { failing, holds } of PROMISES) {
    if ((await holds(probeOf(await serve(open), stopped, () => {}))) === false) broken.push(failing)
  }
  return broken
}

/** A service in this process, as far as the probes call it. */
async function serve(open: Open): Promise<Service> {
  let runs = 0
  const protection = await open(
    payoutWork(150, () => runs++),
    { redisPort: 0, phase: 'first' },
  )
  if (!('handlers' in protection)) throw new TypeError('Expected a route of Express.')
  const app = express()
  app.post('/payouts', express.json(), ...protection.handlers)
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanUps.push(() => {
    server.closeAllConnections()
    server.close()
    return protection.close?.()
  })
  const calls: Record<string, () => unknown> = {
    begin() {
      runs = 0
    },
    end: () => ({ runs }),
  }
  return {
    variant: { store: 'memory' },
    port: (server.address() as AddressInfo).port,
    call: async (name: string) => calls[name]?.(),
  } as unknown as Service
}
