// A process that served requests, closed its server, and has work pending that nobody waits for: it must end by itself.
import type { Store } from 'once-per-key/core'
import { createRequestEngine } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { Findings } from '../layer.js'
import { factsOf } from './attempts.js'
import { startService } from './service.js'
import { briefTraffic } from './traffic.js'

const ANSWER = { status: 201, statusMessage: '', headers: [], body: Buffer.from('made') }

const findings = new Findings()
const service = await startService(() => performance.now())
await briefTraffic(service, findings)
await service.once.idle()
await service.close()

await leavePending()
process.send?.({ violations: findings.violations }, () => process.disconnect())

/** A run without an end, a repeated completion that is not answered, a completion, a release and a claim's that fail. */
async function leavePending(): Promise<void> {
  const down = () => Promise.reject(new Error('The store is down.'))
  await engineOver(new MemoryStore()).decide(factsOf('without an end'))

  await repeated()
  await engineOver(memoryStoreBut({ begin: down, release: down })).decide(factsOf('given up'))

  await settle(memoryStoreBut({ complete: down }))

  const releasing = await engineOver(memoryStoreBut({ release: down })).decide(factsOf('releasing'))
  if (releasing.action === 'execute') await releasing.run.fail()
}

/** A completion fails, and its second copy is not answered. */
async function repeated(): Promise<void> {
  let copies = 0
  const alive = setInterval(() => {}, 1_000)
  await new Promise<void>((sent) => {
    const complete = async (): Promise<never> => {
      if (++copies === 1) throw new Error('The store is down.')
      sent()
      return new Promise(() => {})
    }
    void settle(memoryStoreBut({ complete }))
  })
  clearInterval(alive)
}

async function settle(store: Store): Promise<void> {
  const decision = await engineOver(store).decide(factsOf('settled'))
  if (decision.action === 'execute') await decision.run.settle(ANSWER)
}

function engineOver(store: Store) {
  return createRequestEngine({
    store,
    scope: () => 'acme',
    leaseMs: 400_000,
    storeTimeoutMs: 100_000,
    inFlightWaitMs: 400_000,
    onEvent: () => {},
  })
}

function memoryStoreBut(changes: Partial<Store>): Store {
  const inner = new MemoryStore()
  return {
    begin: (key, claim) => inner.begin(key, claim),
    renew: (key, own) => inner.renew(key, own),
    complete: (key, own) => inner.complete(key, own),
    release: (key, own) => inner.release(key, own),
    ...changes,
  }
}
