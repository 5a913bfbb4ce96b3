import type { BeginReply, CommandReply, MaybePromise, Store } from 'once-per-key/core'
import type { CommandFacts, CommandName, Note, Reply } from './journal.js'

/** A store that notes each command as it leaves, and its reply as it comes. */
export function journaledStore(store: Store, note: (note: Note) => void): Store {
  let commands = 0
  const step = store.step?.bind(store) as NonNullable<Store['step']>

  async function noted<R extends BeginReply | CommandReply>(
    command: CommandName,
    about: CommandFacts,
    send: () => MaybePromise<R>,
  ): Promise<R> {
    const id = ++commands
    note({ what: 'sent', id, command, about })
    try {
      const reply = await send()
      note({ what: 'replied', id, reply: shown(reply) })
      return reply
    } catch (error) {
      note({ what: 'unanswered', id, reason: error instanceof Error ? error.message : String(error) })
      throw error
    }
  }

  return {
    begin: (recordKey, claim) => noted('begin', { recordKey, token: claim.token }, () => store.begin(recordKey, claim)),
    renew: (recordKey, own) => noted('renew', { recordKey, ...facts(own) }, () => store.renew(recordKey, own)),
    complete: (recordKey, own) => noted('complete', { recordKey, ...facts(own) }, () => store.complete(recordKey, own)),
    release: (recordKey, own) => noted('release', { recordKey, ...facts(own) }, () => store.release(recordKey, own)),
    ...(store.step && {
      step: (recordKey, own) => {
        const { label, state } = own
        return noted('step', { recordKey, ...facts(own), step: { label, state } }, () => step(recordKey, own))
      },
    }),
    ...(store.observe && { observe: store.observe.bind(store) }),
  }
}

function facts({ token, uncertain }: { token: string; uncertain: boolean }) {
  return { token, uncertain }
}

function shown(reply: BeginReply | CommandReply): Reply {
  if ('ok' in reply) return reply.ok ? { outcome: 'ok' } : { outcome: 'stale', ...met(reply.record?.state) }
  if (!reply.acquired) return { outcome: 'refused', met: reply.record.state }
  const { attempt, previousOutcome } = reply
  return { outcome: 'acquired', attempt, previousOutcome }
}

function met(state: string | undefined) {
  return state === undefined ? {} : { met: state }
}
