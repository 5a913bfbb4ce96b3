import type { Store } from 'once-per-key/core'
import {
  type Command,
  count,
  type Event,
  type Reply,
  send,
  step,
  type Visits,
} from '../../../test/support/histories.js'
import { inTime } from '../../../test/support/in-time.js'
import type { StoredRecord } from '../../../test/support/machine-records.js'
import type { Findings } from '../layer.js'
import { type Aspect, aspectsOf, aspectsOfLife } from './compare.js'
import type { Setting } from './grounds.js'
import { flawOfSeal } from './sealing.js'
import { named } from './story.js'

/** Long for a server of one's own, even on a machine that is busy. */
const COMMAND_LIMIT_MS = 20_000

/**
 * Gives a history to a store and to the machine, command by command, then looks at what is left: how long each record
 * still lives, what a stranger is shown of it, one unit before its end and at its end. Ends at the first difference, since
 * from there on the two have gone apart. Returns whether there was one.
 */
export async function compare(
  history: readonly Event[],
  setting: Setting,
  findings: Findings,
  visits: Visits,
  about: string,
): Promise<boolean> {
  const { store, unitMs, slackMs } = setting
  const records = new Map<string, StoredRecord>()
  const past: Event[] = []
  let strangers = 0
  let now = unitMs

  async function play(event: Event): Promise<boolean> {
    past.push(event)
    if (event.type !== 'advance') return same(event)
    now += event.ms
    await inTime(setting.advance(event.ms), COMMAND_LIMIT_MS)
    return true
  }

  async function same(command: Command): Promise<boolean> {
    const stored = records.get(command.key) ?? null
    const { record, reply: due } = step(command, stored, now)
    count(command, stored, due, now, visits)
    if (record !== null) records.set(command.key, record)
    const met = stored !== null && now < stored.expiresAt ? stored : null
    let seen: Reply
    try {
      seen = await inTime(sendOwn(command, store, setting.name(command.key)), COMMAND_LIMIT_MS)
    } catch (error) {
      return agree([['L1', false]], command.key, due, error)
    }
    const agrees = agree(aspectsOf(command, met, due, seen, slackMs), command.key, due, seen)
    if ('record' in seen && seen.record?.state === 'completed') seen.record.answer?.body?.fill(0)
    return agrees
  }

  async function livesAsLong(key: string): Promise<boolean> {
    if (setting.lifeLeftMs === undefined) return true
    const due = (records.get(key)?.expiresAt ?? now) - now
    const seen = await inTime(setting.lifeLeftMs(key), COMMAND_LIMIT_MS)
    return agree(aspectsOfLife(due, seen, slackMs), key, `a life of ${due} ms`, `one of ${seen} ms`)
  }

  function agree(aspects: readonly Aspect[], key: string, due: unknown, seen: unknown): boolean {
    for (const [check, holds] of aspects) {
      findings.expect(check, holds, () => `${about}, key ${key}: ${named(past, key, unitMs, due, seen)}`)
    }
    return aspects.every(([, holds]) => holds)
  }

  async function isSealedWell(key: string): Promise<boolean> {
    const record = records.get(key)
    if (setting.sealing === undefined || record?.state !== 'completed' || now >= record.expiresAt) return true
    const looking = flawOfSeal(setting.sealing, setting.name(key), record.answer)
    const flaw = await inTime(looking, COMMAND_LIMIT_MS)
    return agree([['S13', flaw === null]], key, 'a seal that holds', flaw)
  }

  /** From the record that ends first to the one that ends last. */
  async function lastsToItsEnd(): Promise<boolean> {
    const bound = [...records].filter(([, { fingerprint }]) => fingerprint !== null && fingerprint !== STRANGE)
    bound.sort(([, one], [, other]) => one.expiresAt - other.expiresAt)
    for (const [key, { expiresAt }] of bound) {
      if (expiresAt <= now) continue
      const restMs = expiresAt - now
      if (restMs > unitMs && !(await play({ type: 'advance', ms: restMs - unitMs }))) return false
      if (!(await play(strangersBegin(key)))) return false
      await play({ type: 'advance', ms: expiresAt - now })
      if (!(await play(strangersBegin(key)))) return false
    }
    return true
  }

  /** Changes no record that is bound: the fingerprint is of no other request. */
  function strangersBegin(key: string): Command {
    const terms = { leaseMs: 50 * unitMs, retentionMs: 200 * unitMs, unknownOutcome: 'refuse' as const }
    return {
      type: 'begin',
      key,
      claim: { token: `stranger ${++strangers}`, scope: 's', fingerprint: STRANGE, ...terms },
    }
  }

  for (const event of history) if (!(await play(event))) return true
  for (const key of records.keys()) {
    if (!(await livesAsLong(key))) return true
    if (!(await isSealedWell(key))) return true
    if (!(await play(strangersBegin(key)))) return true
  }
  return !(await lastsToItsEnd())
}

const STRANGE = 'h'

/** Whoever hands bytes in, or is given some, may write on them afterwards. */
async function sendOwn(command: Command, store: Store, key: string): Promise<Reply> {
  const own = structuredClone(command)
  const reply = await send(own, store, key)
  if (own.type === 'complete') own.own.answer.body?.fill(0)
  return reply
}
