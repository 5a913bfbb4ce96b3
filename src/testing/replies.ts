import { inspect } from 'node:util'
import {
  type CommandName,
  type CommandReply,
  type Forgetting,
  faultInReply,
  type IdempotencyRecord,
  type ListedRecords,
  type MaybePromise,
  type Store,
} from '../core/index.js'
import { broken, inWords, promised } from './seen.js'

/** Wraps a store so that each reply, in every law, is checked: the engine accepts it, and it contains no token. */
export function heldToItsReplies(store: Store): Store {
  const tokens = new Set<string>()

  async function sent<Reply extends object>(
    command: CommandName,
    { token, fingerprint }: { readonly token: string; readonly fingerprint?: string },
    send: () => MaybePromise<Reply>,
  ): Promise<Reply> {
    tokens.add(token)
    return held(command, await send(), fingerprint)
  }

  function held<Reply extends object>(command: CommandName, reply: Reply, fingerprint?: string): Reply {
    const fault = faultInReply(command, reply, fingerprint)
    if (fault !== null) {
      const { member, expected, seen } = fault
      const due = inWords('as the interface says')
      broken(`\`${command}\` replies as the interface says.`, due, reply, [{ member, due: inWords(expected), seen }])
    }
    promised(fieldsMissingIn(reply), [], 'The fields of an answer are own properties, so a copy has all four.')
    const shown = everythingIn(reply)
    const shownTokens = [...tokens].filter((token) => shown.includes(token))
    promised(shownTokens, [], 'The token proves who owns a record: no reply contains it.')
    return reply
  }

  async function inspected(key: string) {
    const record = (await store.inspect?.(key)) as IdempotencyRecord | null
    return held('inspect', { record }).record
  }

  const listed = async (from: string | null) => held('list', (await store.list?.(from)) as ListedRecords)

  async function listedScope(scope: string, from: string | null) {
    return held('listScope', (await store.listScope?.(scope, from)) as ListedRecords)
  }

  async function forgotten(key: string, forgetting: Forgetting) {
    return held('forget', (await store.forget?.(key, forgetting)) as CommandReply)
  }

  const stepped: Store['step'] = async (key, own) =>
    sent('step', own, () => store.step?.(key, own) as MaybePromise<CommandReply>)

  return {
    begin: (key, claim) => sent('begin', claim, () => store.begin(key, claim)),
    renew: (key, own) => sent('renew', own, () => store.renew(key, own)),
    complete: (key, own) => sent('complete', own, () => store.complete(key, own)),
    release: (key, own) => sent('release', own, () => store.release(key, own)),
    ...(store.step && { step: stepped }),
    ...(store.inspect && { inspect: inspected }),
    ...(store.list && { list: listed }),
    ...(store.listScope && { listScope: listedScope }),
    ...(store.forget && { forget: forgotten }),
    ...(store.resolve && {
      resolve: (key, resolution) =>
        sent('resolve', resolution, () => store.resolve?.(key, resolution) as MaybePromise<CommandReply>),
    }),
  }
}

const ANSWER_FIELDS = ['status', 'statusMessage', 'headers', 'body']

/** The engine copies an answer with `{ ...answer }`. */
function fieldsMissingIn(reply: object & { readonly record?: IdempotencyRecord | null }): string[] {
  if (reply.record?.state !== 'completed' || reply.record.answer === null) return []
  const own = Object.keys(reply.record.answer)
  return ANSWER_FIELDS.filter((field) => !own.includes(field))
}

/** As text. */
function everythingIn(reply: object): string {
  return inspect(reply, { depth: Number.POSITIVE_INFINITY, compact: true })
}
