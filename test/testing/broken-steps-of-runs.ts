import { machine } from 'once-per-key/core'
import { type BrokenStore, broken } from './broken-steps.js'

const { step } = machine

/** One mistake each in how the steps of an operation are recorded. */
export const BROKEN_STEPS_OF_RUNS: readonly BrokenStore[] = [
  broken('a late command takes a newer mark away', ['steps: a late command of one owner changes nothing'], {
    step: (record, own, now) => step(record, { ...own, order: 1e6 }, now),
  }),
  broken('the order of an earlier owner counts', ['steps: the order starts anew with each owner'], {
    begin: (record, claim, now) => {
      const begun = machine.begin(record, claim, now)
      if (record?.state !== 'failed' || begun.record?.state !== 'in-flight') return begun
      return { ...begun, record: { ...begun.record, steps: record.steps ?? [] } }
    },
  }),
  broken('a late mark takes a result away', ['steps: a result is final'], {
    step: (record, own, now) => {
      if (record?.state !== 'in-flight') return step(record, own, now)
      const steps = record.steps?.map((each) => (each.order === 0 ? { ...each, state: 'begun' as const } : each))
      return step({ ...record, ...(steps && { steps }) }, own, now)
    },
  }),
  broken('an owner that was taken over records a step', ['steps: an owner that was taken over records none'], {
    step: (record, own, now) => step(record && { ...record, token: own.token }, own, now),
  }),
  broken('a begin that is sent again forgets the steps', ['steps: a begin that is sent again is told them too'], {
    begin: (record, claim, now) => withoutSteps(machine.begin(record, claim, now), record?.token === claim.token),
  }),
  broken('a takeover forgets the steps', ['steps: a takeover is told those that were recorded'], {
    begin: (record, claim, now) => withoutSteps(machine.begin(record, claim, now), record?.token !== claim.token),
  }),
  broken('a failure drops the steps', ['steps: an uncertain failure keeps them'], {
    release: (record, own, now) => {
      const released = machine.release(record, own, now)
      if (released.record?.state !== 'failed') return released
      return { ...released, record: { ...released.record, steps: [] } }
    },
  }),
  broken('a certain failure hands its steps on', ['steps: an uncertain failure keeps them, a certain one'], {
    begin: (record, claim, now) => {
      const begun = machine.begin(record, claim, now)
      const isNext = record?.state === 'failed' && !record.uncertain && begun.reply.acquired
      return isNext ? { ...begun, reply: { ...begun.reply, steps: [CHARGED] } } : begun
    },
  }),
  broken('a step does not renew the lease', ['steps: it renews the lease, and restarts'], {
    step: (record, own, now) => {
      const { record: next, reply } = step(record, own, now)
      const isSame = record?.state === 'in-flight' && next?.state === 'in-flight'
      return { record: isSame ? { ...next, leaseUntil: record.leaseUntil } : next, reply }
    },
  }),
  broken('a step begins behind the completion', ['steps: behind a completion a result is confirmed'], {
    step: (record, own, now) =>
      record?.state === 'completed' ? { record, reply: { ok: true } } : step(record, own, now),
  }),
  broken('a failed attempt records steps', ['steps: behind an uncertain failure', 'steps: behind a certain failure'], {
    step: (record, own, now) =>
      step(record?.state === 'failed' && record.token === own.token ? null : record, own, now),
  }),
  broken('whoever has a result to record behind a completion is confirmed', ['steps: behind a completion a result'], {
    step: (record, own, now) =>
      record?.state === 'completed' && own.state === 'done' ? { record, reply: OK } : step(record, own, now),
  }),
  broken('what was taken back loses its order', ['steps: a late command of one owner changes nothing'], {
    step: (record, own, now) => {
      const { record: next, reply } = step(record, own, now)
      if (next?.state !== 'in-flight' || next.steps === undefined) return { record: next, reply }
      return { record: { ...next, steps: next.steps.filter(({ state }) => state !== 'undone') }, reply }
    },
  }),
  broken('a step does not restart the retention', ['steps: it renews the lease, and restarts'], {
    step: (record, own, now) => {
      const { record: next, reply } = step(record, own, now)
      return { record: record && next && { ...next, expiresAt: record.expiresAt }, reply }
    },
  }),
  broken('a renewal that restores the claim does not say so', ['steps: a renewal that restores the claim'], {
    renew: (record, own, now) => {
      const { record: next, reply } = machine.renew(record, own, now)
      return { record: next, reply: reply.ok ? OK : reply }
    },
  }),
  broken('a step finds a record that has expired', ['steps: after its retention a record is none'], {
    step: (record, own, now) => step(record && { ...record, expiresAt: now + 1 }, own, now),
  }),
  broken('labels are cut', ['steps: a hundred survive'], {
    step: (record, own, now) => step(record, { ...own, label: own.label.slice(0, 64) }, now),
  }),
  broken('labels have no case', ['steps: a hundred survive'], {
    step: (record, own, now) => step(record, { ...own, label: own.label.toLowerCase() }, now),
  }),
  broken('results are cut', ['steps: a hundred survive'], {
    step: (record, own, now) => step(record, { ...own, result: own.result?.subarray(0, 4_096) ?? null }, now),
  }),
  broken('the latest 32 steps are kept', ['steps: a hundred survive'], {
    step: (record, own, now) => {
      const { record: next, reply } = step(record, own, now)
      if (next?.state !== 'in-flight' || next.steps === undefined) return { record: next, reply }
      return { record: { ...next, steps: next.steps.slice(-32) }, reply }
    },
  }),
  broken('a restored claim is not said to be', ['steps: where there is no record, the claim is restored'], {
    step: (record, own, now) => {
      const { record: next, reply } = step(record, own, now)
      return { record: next, reply: reply.ok ? { ok: true } : reply }
    },
  }),
  broken('results are text', ['steps: any bytes and any label survive'], {
    step: (record, own, now) =>
      step(record, { ...own, result: own.result && Buffer.from(Buffer.from(own.result).toString()) }, now),
  }),
]

const OK = { ok: true } as const
const CHARGED = { label: 'charge', state: 'begun', result: null } as const

function withoutSteps<Step extends ReturnType<typeof machine.begin>>(begun: Step, forgets: boolean): Step {
  if (!forgets || !begun.reply.acquired) return begun
  const { steps: _, ...reply } = begun.reply
  return { ...begun, reply }
}
