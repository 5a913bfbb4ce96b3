import {
  bodyField,
  type IdempotencyEvent,
  type IdempotencyOptions,
  type IdempotencyRequest,
  idempotency,
  ietfDraft,
  type Problem,
  singleTenant,
  withoutBody,
} from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'

const store = new MemoryStore({ maxBytes: 1, maxEntries: 1, whenFull: 'evict', now: () => 0 })
const scope = singleTenant

// Every option of the contract, with its default or something near it.
const all: IdempotencyOptions<IdempotencyRequest> = {
  store,
  scope,
  header: 'Idempotency-Key',
  required: false,
  methods: ['POST', 'PUT', 'PATCH', 'DELETE'],
  skip: (req) => req.path === '/health',
  legacyKey: bodyField('idempotencyKey', {
    deprecatedSince: new Date(0),
    sunset: new Date(1),
    link: 'https://example.com/keys',
    whenBoth: 'field',
  }),
  fingerprint: (req) => req.body,
  isSuccess: (answer) => answer.status < 300,
  keepHeader: (name, byDefault) => byDefault || name === 'set-cookie',
  leaseMs: 30_000,
  maxRunMs: 15 * 60_000,
  retentionMs: 24 * 3_600_000,
  inFlightWaitMs: 0,
  retryAfterMs: 1_000,
  unknownOutcome: 'rerun',
  storeTimeoutMs: 2_000,
  storeFailure: 'refuse',
  maxAnswerBytes: 1_048_576,
  renderProblem: (problem: Problem, req) => ({ contentType: 'text/plain', body: `${problem.code} ${req.url}` }),
  problemStatuses: ietfDraft,
  onEvent: (event) => sentence(event),
}
idempotency(all)
idempotency({ store, scope, skip: (req) => req.path === '/health', fingerprint: (req) => req.path })
idempotency({ store, scope, fingerprint: withoutBody((req) => req.get('Content-Digest') ?? null) })
idempotency({ store, scope: (req) => req.path, fingerprint: withoutBody(({ path }: { path: string }) => path) })
idempotency({ store, scope, unknownOutcome: 'refuse', storeFailure: 'runUnprotected' })
idempotency({ store, scope, renderProblem: (problem) => ({ body: problem.detail }) })

// @ts-expect-error a store is required
idempotency({ scope })
// @ts-expect-error a scope is required
idempotency({ store })
// @ts-expect-error no such option
idempotency({ store, scope, leaseMS: 30_000 })
// @ts-expect-error durations are numbers
idempotency({ store, scope, leaseMs: '30s' })
// @ts-expect-error a scope is a string
idempotency({ store, scope: () => 7 })
// @ts-expect-error neither of the two
idempotency({ store, scope, unknownOutcome: 'ignore' })
// @ts-expect-error neither of the two
idempotency({ store, scope, storeFailure: 'run' })
// @ts-expect-error a list
idempotency({ store, scope, methods: 'POST' })
// @ts-expect-error no such code
idempotency({ store, scope, problemStatuses: { conflict: 422 } })
// @ts-expect-error not a store
idempotency({ store: new Map(), scope })
// @ts-expect-error the date is required
bodyField('idempotencyKey', {})
// @ts-expect-error none of the three
bodyField('idempotencyKey', { deprecatedSince: new Date(0), whenBoth: 'body' })
// @ts-expect-error no such option
new MemoryStore({ maxSize: 1 })

/** Narrows by `type`, and the compiler knows when all are named. */
function sentence(event: IdempotencyEvent): string {
  switch (event.type) {
    case 'claimed':
      return `${event.scope} ${event.key}: attempt ${event.attempt} after ${event.previousOutcome}`
    case 'completed':
      return `attempt ${event.attempt}: ${event.status}${event.answerKept ? '' : ', not kept'}`
    case 'failed':
      return `attempt ${event.attempt}${event.uncertain ? ', perhaps not without effect' : ''}`
    case 'lease_lost':
      return `attempt ${event.attempt}: ${event.reason}`
    case 'replayed':
    case 'completion_pending':
    case 'completion_given_up':
    case 'transaction_not_committed':
      return `${event.type}: attempt ${event.attempt}`
    case 'resolved':
      return `attempt ${event.attempt}, ${event.as}`
    case 'in_flight':
    case 'mismatched':
    case 'answer_not_kept':
    case 'outcome_unknown':
    case 'key_expired':
    case 'unprotected':
    case 'store_paused':
      // @ts-expect-error it names no attempt
      event.attempt
      return `${event.type}: ${event.scope} ${event.key}`
    case 'step_done':
    case 'step_resumed':
    case 'step_pending':
      return `${event.label} of ${event.key}, attempt ${event.attempt}`
    case 'rejected':
      // @ts-expect-error there is no key to speak of
      event.key
      return event.code
    case 'store_failed':
      return `${event.command}: ${event.error.name} ${event.error.message}`
    case 'option_failed':
      return `${event.option}: ${event.error}`
    case 'evicted':
      return event.state
    case 'answer_dropped':
      return event.type
    case 'connections_exhausted':
      return `${event.waiting}: ${event.advice}`
    case 'sweep_failed':
      return `${event.error.code}: ${event.error.message}`
    case 'eviction_policy':
      return `${event.policy ?? 'unknown'}: ${event.advice}`
    default:
      return event satisfies never
  }
}
