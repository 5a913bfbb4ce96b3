import { inspect } from 'node:util'
import type { CommandName } from '../core/events.js'
import type { Done, IdempotencyRecord, Store } from '../core/index.js'
import { isReply } from '../core/reply.js'
import { promised } from './seen.js'

/** The same store, each of whose replies, whichever law asks, is one that the engine accepts, and shows no token. */
export function heldToItsReplies(store: Store): Store {
  const tokens = new Set<string>()

  async function sent<Reply extends object>(
    command: CommandName,
    { token }: { readonly token: string },
    send: () => Promise<Reply>,
  ): Promise<Reply> {
    tokens.add(token)
    return held(command, await send())
  }

  function held<Reply extends object>(command: CommandName, reply: Reply): Reply {
    promised(isReply(command, reply) ? 'a reply' : reply, 'a reply', `\`${command}\` replies as the interface says.`)
    promised(fieldsMissingIn(reply), [], 'The fields of an answer are its own: a copy of it has all four.')
    const shown = everythingIn(reply)
    const shownTokens = [...tokens].filter((token) => shown.includes(token))
    promised(shownTokens, [], 'The token proves who owns a record: it is shown to nobody.')
    return reply
  }

  async function inspected(key: string) {
    const record = (await store.inspect?.(key)) as IdempotencyRecord | null
    return held('inspect', { record }).record
  }

  return {
    effects: store.effects,
    begin: (key, claim) => sent('begin', claim, () => store.begin(key, claim)),
    renew: (key, own) => sent('renew', own, () => store.renew(key, own)),
    complete: (key, own) => sent('complete', own, () => store.complete(key, own)),
    release: (key, own) => sent('release', own, () => store.release(key, own)),
    ...(store.inspect && { inspect: inspected }),
    ...(store.resolve && {
      resolve: (key, resolution) =>
        sent('resolve', resolution, () => store.resolve?.(key, resolution) as Promise<Done>),
    }),
  }
}

const ANSWER_FIELDS = ['status', 'statusMessage', 'headers', 'body']

/** The engine copies an answer with `{ ...answer }`. */
function fieldsMissingIn(reply: { readonly record?: IdempotencyRecord | null }): string[] {
  if (reply.record?.state !== 'completed') return []
  const own = Object.keys(reply.record.answer)
  return ANSWER_FIELDS.filter((field) => !own.includes(field))
}

/** As text; but for the context, which is between the store and the handler. */
function everythingIn(reply: object): string {
  return inspect({ ...reply, context: null }, { depth: Number.POSITIVE_INFINITY, compact: true })
}
