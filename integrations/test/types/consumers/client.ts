import {
  type Client,
  type ClientOptions,
  createClient,
  type Done,
  type KeyStorage,
  type Keys,
  memoryKeys,
  type Outcome,
  type Problem,
} from 'once-per-key/client'

declare const storage: KeyStorage
const inMemory: KeyStorage = memoryKeys()
const derived: Keys = (operation) => `shop ${operation}`
const options: ClientOptions = {
  keys: storage,
  fetch,
  tryTimeoutMs: 5_000,
  totalTimeoutMs: 30_000,
  maxTries: 3,
  settles: (refusal, problem) => refusal.status === 422 && problem?.code !== 'closed',
}
const client: Client = createClient(options)
createClient({ keys: inMemory })
createClient({ keys: derived })
// @ts-expect-error: where keys are kept must be said
createClient({})
// @ts-expect-error: a name that is unknown
createClient({ keys: inMemory, maxTrys: 3 })
// @ts-expect-error: what JSON.stringify makes of it would be a body
void client.send('pay order-1001', '/payouts', { body: { amount: 100 } })

export async function pay(signal: AbortSignal): Promise<unknown> {
  const end: Outcome = await client.send('pay order-1001', new URL('http://127.0.0.1/payouts'), { body: '{}', signal })
  switch (end.outcome) {
    case 'done': {
      const { response, replayed }: Done = end
      await client.forget('pay order-1001')
      return replayed ? response.headers.get('Idempotent-Replayed') : response.json()
    }
    case 'refused': {
      const problem: Problem | undefined = end.problem
      return problem?.detail ?? end.response.status
    }
    case 'unknown':
      // @ts-expect-error: there may be none
      return end.cause ?? end.response.status
    default:
      return end satisfies never
  }
}
