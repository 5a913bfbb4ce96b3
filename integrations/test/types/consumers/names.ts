// The public names, entry by entry: what is imported here is there.
import {
  bodyField,
  type IdempotencyContext,
  IdempotencyError,
  type IdempotencyEvent,
  type IdempotencyOptions,
  idempotency,
  ietfDraft,
  type Problem,
  singleTenant,
  withoutBody,
} from 'once-per-key'
import {
  type BeginReply,
  type Claim,
  createEngine,
  type Decision,
  type IdempotencyRecord,
  machine,
  type RecordName,
  type RequestFacts,
  type Resolution,
  type Store,
} from 'once-per-key/core'
import type { AttemptName, KnownOutcome, Operator } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { storeLaws } from 'once-per-key/testing'

export const values = [
  idempotency,
  bodyField,
  singleTenant,
  withoutBody,
  ietfDraft,
  IdempotencyError,
  createEngine,
  MemoryStore,
  storeLaws,
]

export type Types = [
  IdempotencyContext,
  IdempotencyEvent,
  IdempotencyOptions,
  Problem,
  Store,
  Claim,
  BeginReply,
  Decision,
  RequestFacts,
]

// A store of one's own, and its laws under any runner.
export class OwnStore implements Store {
  async begin(_key: string, claim: Claim): Promise<BeginReply> {
    return { acquired: true, attempt: claim.token.length, previousOutcome: 'none' }
  }
  async renew() {
    return { ok: true } as const
  }
  async complete() {
    return { ok: false, record: null } as const
  }
  async release() {
    return { ok: true } as const
  }
}
declare const test: (name: string, fn: () => Promise<void>) => void
storeLaws(test, async () => ({ store: new OwnStore() }))
storeLaws(test, async () => ({ store: new OwnStore(), advance: (_ms: number) => {}, close: async () => {} }))
// @ts-expect-error not a store
storeLaws(test, async () => ({ store: {} }))

// One that is operable.
export class OperableStore extends OwnStore {
  async inspect(_key: string): Promise<IdempotencyRecord | null> {
    return machine.inspect(null, 1).reply
  }
  async resolve(_key: string, resolution: Resolution) {
    return machine.resolve(null, resolution, 1).reply
  }
}
storeLaws(test, async () => ({ store: new OperableStore() }), { operable: true })

// An operator: the middleware, or an engine.
export const operators: Operator[] = [
  idempotency({ store: new OwnStore(), scope: singleTenant }),
  createEngine({ store: new OwnStore(), scope: singleTenant }),
]
export async function settle(operator: Operator, name: RecordName, outcome: KnownOutcome): Promise<string> {
  const record = await operator.inspect({ ...name, namespace: 'webhook' })
  const attempt: AttemptName = { ...name, attempt: record?.attempt ?? 0 }
  const done = await operator.resolve(attempt, outcome)
  await operator.resolve(attempt, { completed: { status: 201, body: { id: 1 }, headers: { Link: ['</a>', '</b>'] } } })
  await operator.resolve(attempt, { completed: { status: 201, body: Uint8Array.of(1) } })
  // @ts-expect-error the attempt that was looked at is required
  await operator.resolve(name, 'failed')
  // @ts-expect-error no such outcome
  await operator.resolve(attempt, 'done')
  // @ts-expect-error a status is required
  await operator.resolve(attempt, { completed: { body: 'paid' } })
  return done.ok ? 'settled' : (done.record?.state ?? 'none')
}

// A binding of one's own: four arms, and the compiler knows when one is missing.
export async function bind(facts: RequestFacts<{ tenant: string }>): Promise<string> {
  const engine = createEngine<{ tenant: string }>({ store: new OwnStore(), scope: ({ tenant }) => tenant })
  const decision: Decision = await engine.decide(facts)
  switch (decision.action) {
    case 'bypass':
      return 'handed on'
    case 'execute': {
      const answer = { status: 201, statusMessage: '', headers: [['Content-Type', 'text/plain']], body: null } as const
      const settled = await decision.run.settle(answer)
      return settled.action
    }
    case 'replay':
      return String(decision.answer.status)
    case 'reject':
      return decision.problem.code
    default:
      return decision satisfies never
  }
}
