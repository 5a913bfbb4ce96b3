import { inspect } from 'node:util'
import type { CommandName } from '../core/events.js'
import type { Done, IdempotencyRecord, Store } from '../core/index.js'
import { isReply } from '../core/reply.js'
import { promised } from './seen.js'

/** The same store, each of whose replies, whichever law asks, is one that the engine accepts, and shows no token. */
export function heldToItsReplies(store: Store): Store {
  const tokens = new Set<string>()

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
    async begin(key, claim) {
      tokens.add(claim.token)
      return held('begin', await store.begin(key, claim))
    },
    async renew(key, own) {
      tokens.add(own.token)
      return held('renew', await store.renew(key, own))
    },
    async complete(key, own) {
      tokens.add(own.token)
      return held('complete', await store.complete(key, own))
    },
    async release(key, own) {
      tokens.add(own.token)
      return held('release', await store.release(key, own))
    },
    ...(store.inspect && { inspect: inspected }),
    ...(store.resolve && {
      async resolve(key, resolution) {
        tokens.add(resolution.token)
        return held('resolve', (await store.resolve?.(key, resolution)) as Done)
      },
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
