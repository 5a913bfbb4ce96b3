import type {
  Answer,
  Claim,
  MaybePromise,
  OwnersCommand,
  Ownership,
  OwnersReply,
  SentOperation,
  Store,
} from '../core/index.js'
import { promised } from './seen.js'

type Given = (Claim | Ownership) & {
  readonly leaseMs?: number
  readonly failedMs?: number
  readonly answer?: Answer
}

/** The four commands by the store's `send`, as the engine sends them. */
export function bySend(store: Store): Pick<Store, OwnersCommand> {
  const by =
    <Name extends OwnersCommand>(name: Name) =>
    (key: string, given: Given): MaybePromise<OwnersReply[Name]> =>
      new Promise((resolve, reject) => {
        promised(typeof store.send, 'function', 'A store that sends has `send`.')
        const operation = operationOf(name, key, given)
        store.send?.(name, operation, { heard: resolve, failed: reject })
        Object.assign(operation, LATER)
      })
  return { begin: by('begin'), renew: by('renew'), complete: by('complete'), release: by('release') }
}

/** The same object serves later commands of the operation: a store has read what it needs when `send` returns. */
const LATER: Partial<SentOperation> = {
  recordKey: 'read too late',
  token: 'read too late',
  fingerprint: 'read too late',
  attempt: 99,
  uncertain: true,
  answer: null,
  failure: { uncertain: true },
}

/** What the command is not to read differs from what it is. */
function operationOf(name: OwnersCommand, recordKey: string, given: Given): SentOperation {
  const { token, scope, fingerprint, retentionMs: kept, leaseMs = 0, failedMs = 0, answer = null } = given
  const { attempt, uncertain } = 'attempt' in given ? given : { attempt: 0, uncertain: false }
  const unknownOutcome = 'unknownOutcome' in given ? given.unknownOutcome : 'rerun'
  const [retentionMs, unknownRetentionMs] = name === 'complete' ? [kept, 1] : [1, kept]
  const terms = { leaseMs, failedMs, unknownOutcome, retentionMs, unknownRetentionMs }
  const own = { recordKey, token, scope, fingerprint, attempt, answer, terms }
  return name === 'release'
    ? { ...own, uncertain: !uncertain, failure: { uncertain } }
    : { ...own, uncertain, failure: null }
}
