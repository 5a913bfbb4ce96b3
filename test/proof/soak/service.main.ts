// A process that served requests, closed its server, and has work pending that nobody waits for: it must end by itself.
import type { Store } from 'once-per-key/core'
import { createRequestEngine } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { Findings } from '../layer.js'
import { factsOf } from './attempts.js'
import { startService } from './service.js'
import { briefTraffic } from './traffic.js'

const findings = new Findings()
const service = await startService(() => performance.now())
await briefTraffic(service, findings)
await service.once.idle()
await service.close()

await leavePending()
process.send?.({ violations: findings.violations }, () => process.disconnect())

/** A run without an end, a duplicate that waits, a claim that is not answered, a completion and a release that fail. */
async function leavePending(): Promise<void> {
  const down = () => Promise.reject(new Error('The store is down.'))
  await engineOver(new MemoryStore()).decide(factsOf('without an end'))

  const waited = engineOver(new MemoryStore())
  await waited.decide(factsOf('waited for'))
  void waited.decide(factsOf('waited for'))

  void engineOver(memoryStoreBut({ begin: () => new Promise(() => {}) })).decide(factsOf('not answered'))

  const completing = await engineOver(memoryStoreBut({ complete: down })).decide(factsOf('completing'))
  const answer = { status: 201, statusMessage: '', headers: [], body: Buffer.from('made') }
  if (completing.action === 'execute') await completing.run.settle(answer)

  const releasing = await engineOver(memoryStoreBut({ release: down })).decide(factsOf('releasing'))
  if (releasing.action === 'execute') await releasing.run.fail()
}

function engineOver(store: Store) {
  return createRequestEngine({
    store,
    scope: () => 'acme',
    leaseMs: 400_000,
    storeTimeoutMs: 100_000,
    inFlightWaitMs: 400_000,
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
