// A service that is started from a V8 snapshot, taken after it has claimed a key. Each claim of the snapshot's process, and
// of each that starts from it, goes to standard output, a line each.
import { startupSnapshot } from 'node:v8'
import { machine, type Store } from 'once-per-key/core'
import { createRequestEngine } from 'once-per-key/http'
import { mapStore } from '../../../test/support/map-store.js'
import { factsOf } from './attempts.js'

const store: Store = mapStore(() => 1, {
  ...machine,
  begin(record, claim, now) {
    console.log(JSON.stringify(claim))
    return machine.begin(record, claim, now)
  },
})
const engine = createRequestEngine({ store, scope: () => 'acme' })

async function claimTwice(): Promise<void> {
  for (const key of ['order-1', 'order-2']) {
    const decision = await engine.decide(factsOf(key))
    if (decision.action === 'execute') await decision.run.fail()
  }
}

void claimTwice()
startupSnapshot.setDeserializeMainFunction(() => {
  void claimTwice()
})
