import {
  type Answer,
  type BeginReply,
  type IdempotencyRecord,
  type MaybePromise,
  machine,
  type Store,
} from 'once-per-key/core'
import { mapStore } from '../support/map-store.js'
import type { BrokenStore } from './broken-steps.js'

/** A reply as it is on its way to who asked, and the tokens that the store was given. */
type Change = (reply: Reply, tokens: readonly string[], command: string) => unknown
type Reply = {
  readonly acquired?: boolean
  readonly attempt?: number
  readonly ok?: boolean
  readonly record?: IdempotencyRecord | null
}

const NO_REPLY = '`'
const NO_COPY = 'The fields of an answer are own properties'
const TOKEN = 'The token proves who owns a record'

/** One mistake each in how a reply is put, of stores that do the right thing. */
export const BROKEN_REPLIES: readonly BrokenStore[] = [
  replying('a yes is 1, and a no is 0', ['begin (none) by', 'renew (own, in-flight, lease live)'], NO_REPLY, (reply) =>
    Object.fromEntries(
      Object.entries(reply).map(([name, value]) => [name, typeof value === 'boolean' ? Number(value) : value]),
    ),
  ),
  replying('the first attempt is 0', ['begin (none) by', 'fresh: '], NO_REPLY, (reply) =>
    reply.attempt === 1 ? { ...reply, attempt: 0 } : reply,
  ),
  replying('the lease that is left is told as text', ["renew (another's, in-flight, lease live)"], NO_REPLY, (reply) =>
    withRecord(reply, 'in-flight', (record) => ({ ...record, leaseRemainingMs: `${record.leaseRemainingMs}` })),
  ),
  replying('a lease that is left has no end', ["renew (another's, in-flight, lease live)"], NO_REPLY, (reply) =>
    withRecord(reply, 'in-flight', (record) => ({ ...record, leaseRemainingMs: Number.POSITIVE_INFINITY })),
  ),
  replying('a refusal shows no record', ['begin (completed) by', "renew (another's, completed)"], NO_REPLY, (reply) =>
    reply.record ? { ...reply, record: undefined } : reply,
  ),
  replying('an answer is a view of what is stored', ['begin (completed) by', 'answer: '], NO_COPY, (reply) =>
    withRecord(reply, 'completed', (record) => ({ ...record, answer: record.answer && new AnswerView(record.answer) })),
  ),
  replying('an answer shows its body through a getter', ['begin (completed) by', 'answer: '], NO_COPY, (reply) =>
    withRecord(reply, 'completed', (record) => ({ ...record, answer: record.answer && withHiddenBody(record.answer) })),
  ),
  {
    breaks: 'whoever comes with another fingerprint is shown the answer',
    foundBy: [
      'begin (completed) by another token with another',
      'bound: a command that comes with another fingerprint',
    ],
    open: (now) =>
      mapStore(now, { ...machine, begin: (record, claim, at) => withAnswer(machine.begin(record, claim, at)) }),
  },
  replying('nobody is shown the answer', ['begin (completed) by', 'answer: '], NO_REPLY, (reply) =>
    withRecord(reply, 'completed', (record) => ({ ...record, answer: null })),
  ),
  replying(
    'a refused begin shows the token',
    ['begin (completed) by its own token'],
    TOKEN,
    (reply, tokens, command) =>
      command === 'begin' && reply.record ? { ...reply, record: { ...reply.record, token: tokens[0] } } : reply,
  ),
  replying('a stale reply shows the token', ["renew (another's, in-flight"], TOKEN, (reply, tokens, command) =>
    command === 'renew' && reply.record ? { ...reply, owner: [tokens[0]] } : reply,
  ),
  replying('a failed record shows the token', ["release (another's, failed, certain)"], TOKEN, (reply, tokens) =>
    withRecord(reply, 'failed', (record) => ({ ...record, token: tokens[0] })),
  ),
  replying('inspect shows the token', ['inspect (completed)'], TOKEN, (reply, tokens, command) =>
    command === 'inspect' && reply.record ? { record: { ...reply.record, token: tokens[0] } } : reply,
  ),
]

function replying(breaks: string, foundBy: readonly string[], because: string, change: Change): BrokenStore {
  return { breaks, foundBy, because, open: (now) => changing(mapStore(now) as Required<Store>, change) }
}

function changing(store: Required<Store>, change: Change): Store {
  const tokens: string[] = []
  const changed =
    <Terms extends { readonly token: string }, R extends Reply>(
      command: string,
      send: (key: string, terms: Terms) => MaybePromise<R>,
    ) =>
    async (key: string, terms: Terms) => {
      tokens.push(terms.token)
      return change(await send(key, terms), tokens, command) as R
    }
  return {
    begin: changed('begin', store.begin),
    renew: changed('renew', store.renew),
    complete: changed('complete', store.complete),
    release: changed('release', store.release),
    resolve: changed('resolve', store.resolve),
    async inspect(key) {
      const record = await store.inspect(key)
      return (change({ record }, tokens, 'inspect') as { record: IdempotencyRecord | null }).record
    },
  }
}

function withRecord<State extends IdempotencyRecord['state']>(
  reply: Reply,
  state: State,
  change: (record: Extract<IdempotencyRecord, { state: State }>) => unknown,
): unknown {
  const { record } = reply
  if (record?.state !== state) return reply
  return { ...reply, record: change(record as Extract<IdempotencyRecord, { state: State }>) }
}

function withAnswer({ record, reply }: machine.Change<BeginReply>): machine.Change<BeginReply> {
  if (reply.acquired || reply.record.state !== 'completed' || record?.state !== 'completed') return { record, reply }
  return { record, reply: { ...reply, record: { ...reply.record, answer: record.answer } } }
}

class AnswerView implements Answer {
  readonly #answer: Answer

  constructor(answer: Answer) {
    this.#answer = answer
  }
  get status() {
    return this.#answer.status
  }
  get statusMessage() {
    return this.#answer.statusMessage
  }
  get headers() {
    return this.#answer.headers
  }
  get body() {
    return this.#answer.body
  }
}

function withHiddenBody({ body, ...rest }: Answer): Answer {
  return Object.defineProperty(rest, 'body', { get: () => body, enumerable: false }) as Answer
}
