// A service that is started from a V8 snapshot, taken after it has claimed a key: what the snapshot's process and each that
// starts from it claim with goes to standard output, a token a line.
import { startupSnapshot } from 'node:v8'
import { machine, type Store } from '../../src/core.js'
import { createRequestEngine } from '../../src/http/index.js'
import { runOf } from './engine-on-trial.js'
import { mapStore } from './map-store.js'
import { type Request, requestFacts } from './request-facts.js'

const store: Store = mapStore(() => 1, {
  ...machine,
  begin(record, claim, now) {
    console.log(claim.token)
    return machine.begin(record, claim, now)
  },
})
const engine = createRequestEngine<Request>({ store, scope: () => 'acme' })

async function claimTwice(): Promise<void> {
  for (const key of ['order-1', 'order-2']) await runOf(await engine.decide(requestFacts({ key }))).fail()
}

void claimTwice()
startupSnapshot.setDeserializeMainFunction(() => {
  void claimTwice()
})
