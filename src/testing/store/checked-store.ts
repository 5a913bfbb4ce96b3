import { inspect } from 'node:util'
import {
  type CommandName,
  findReplyFault,
  type IdempotencyRecord,
  type MaybePromise,
  type Store,
} from '../../core/index.js'
import { assertPromise, createPlaceholder, failPromise } from '../seen.js'

/** What only some stores have. */
const LACKING = {
  step: 'A store that is stepped has `step`.',
  inspect: 'An operable store has `inspect`.',
  resolve: 'An operable store has `resolve`.',
  list: 'A store that is listable has `list`.',
  listScope: 'A forgetful store has `listScope`.',
  forget: 'A forgetful store has `forget`.',
} as const

/** A store as laws see it: to send a command that it lacks breaks a promise. */
export type WholeStore = Required<Pick<Store, 'begin' | 'renew' | 'complete' | 'release' | keyof typeof LACKING>>

/** Wraps a store so that each reply, in every law, is checked: the engine accepts it, and it contains no token. */
export function createCheckedStore(store: Store): WholeStore {
  const tokens = new Set<string>()

  function getCommand<Name extends keyof typeof LACKING>(name: Name): WholeStore[Name] {
    assertPromise(typeof store[name], 'function', LACKING[name])
    return store[name]?.bind(store) as WholeStore[Name]
  }

  async function sendChecked<Reply extends object>(
    command: CommandName,
    { token, fingerprint }: { readonly token: string; readonly fingerprint?: string },
    send: () => MaybePromise<Reply>,
  ): Promise<Reply> {
    tokens.add(token)
    return assertReply(command, await send(), fingerprint)
  }

  function assertReply<Reply extends object>(command: CommandName, reply: Reply, fingerprint?: string): Reply {
    const fault = findReplyFault(command, reply, fingerprint)
    if (fault !== null) {
      const { member, expected, seen } = fault
      const due = createPlaceholder('as the interface says')
      const differences = [{ member, due: createPlaceholder(expected), seen }]
      failPromise(`\`${command}\` replies as the interface says.`, due, reply, { differences })
    }
    assertPromise(findMissingFields(reply), [], 'The fields of an answer are own properties, so a copy has all store.')
    const shown = describeWhole(reply)
    const shownTokens = [...tokens].filter((token) => shown.includes(token))
    assertPromise(shownTokens, [], 'The token proves who owns a record: no reply contains it.')
    return reply
  }

  return {
    begin: (key, claim) => sendChecked('begin', claim, () => store.begin(key, claim)),
    renew: (key, own) => sendChecked('renew', own, () => store.renew(key, own)),
    complete: (key, own) => sendChecked('complete', own, () => store.complete(key, own)),
    release: (key, own) => sendChecked('release', own, () => store.release(key, own)),
    step: (key, own) => sendChecked('step', own, () => getCommand('step')(key, own)),
    inspect: async (key) => assertReply('inspect', { record: await getCommand('inspect')(key) }).record,
    resolve: (key, resolution) => sendChecked('resolve', resolution, () => getCommand('resolve')(key, resolution)),
    list: async (from) => assertReply('list', await getCommand('list')(from)),
    listScope: async (scope, from) => assertReply('listScope', await getCommand('listScope')(scope, from)),
    forget: async (key, forgetting) => assertReply('forget', await getCommand('forget')(key, forgetting)),
  }
}

const ANSWER_FIELDS = ['status', 'statusMessage', 'headers', 'body']

/** The engine copies an answer with `{ ...answer }`. */
function findMissingFields(reply: object & { readonly record?: IdempotencyRecord | null }): string[] {
  if (reply.record?.state !== 'completed' || reply.record.answer === null) return []
  const own = Object.keys(reply.record.answer)
  return ANSWER_FIELDS.filter((field) => !own.includes(field))
}

function describeWhole(reply: object): string {
  return inspect(reply, { depth: Number.POSITIVE_INFINITY, compact: true })
}
