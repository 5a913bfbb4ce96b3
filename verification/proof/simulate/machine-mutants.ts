import type { Mutant } from '../mutants/mutant.js'

/** Faults in the rules for records. */
export const machineMutants: readonly Mutant[] = (
  [
    {
      name: 'a live lease is taken over',
      find: '      if (now < record.leaseUntil) return refuse(record, claim, now)\n',
      replace: '',
      check: 'S1',
    },
    {
      name: 'a completed key is claimed again',
      find: "    case 'completed':\n      return refuse(record, claim, now)\n    case 'in-flight':",
      replace: "    case 'completed':\n      return takeOver(record as never, claim, now)\n    case 'in-flight':",
      check: 'S4',
    },
    {
      name: 'a takeover is told as fresh',
      find: 'acquire(claim, record.attempt + 1, true, now, toNextOwnersSteps(record.steps))',
      replace: 'acquire(claim, record.attempt + 1, false, now, toNextOwnersSteps(record.steps))',
      check: 'S5',
    },
    {
      name: 'an uncertain failure counts as a certain one',
      find: 'if (!record.uncertain) return acquire(claim, record.attempt + 1, false, now)',
      replace: 'if (record.attempt >= 0) return acquire(claim, record.attempt + 1, false, now)',
      check: 'S5',
    },
    {
      name: 'a failing takeover forgets the uncertainty',
      find: 'const uncertain = own.uncertain || (record?.uncertain ?? false)',
      replace: 'const uncertain = own.uncertain',
      check: 'S5',
    },
    {
      name: 'the policy `refuse` is ignored',
      find: "if (claim.unknownOutcome === 'refuse' && !isMarked) return refuse(record, claim, now)",
      replace: '',
      check: 'S5',
    },
    {
      name: 'a completion is not fenced',
      find: "    if (record.token !== own.token || record.state === 'failed') return createStaleChange(record, now, own)\n    if (record.state === 'completed') return { record, reply: OK }",
      replace:
        "    if (record.state === 'failed') return createStaleChange(record, now, own)\n    if (record.state === 'completed') return { record, reply: OK }",
      check: 'S6',
    },
    {
      name: 'a release is not fenced',
      find: "if (record.token !== own.token || record.state === 'completed') return createStaleChange(record, now, own)",
      replace: "if (record.state === 'completed') return createStaleChange(record, now, own)",
      check: 'S6',
    },
    {
      name: 'a renewal is not fenced',
      find: "if (record.token !== own.token || record.state !== 'in-flight') return createStaleChange(record, now, own)",
      replace: "if (record.state !== 'in-flight') return createStaleChange(record, now, own)",
      check: 'S6',
    },
    {
      name: 'a release loses the attempt',
      find: '  const { attempt } = record ?? own\n  const uncertain',
      replace: '  const attempt = 0\n  const uncertain',
      check: 'S6',
    },
    {
      name: 'a begin that is sent again is refused',
      find: "return record.state === 'in-flight' ? acquireAgain(record, claim, now) : refuse(record, claim, now)",
      replace: 'return refuse(record, claim, now)',
      check: 'S7',
    },
    {
      name: 'a takeover that is sent again is told as fresh',
      find: 'reply: createAcquiredReply(record.attempt, record.uncertain, record.steps)',
      replace: 'reply: createAcquiredReply(record.attempt, false, record.steps)',
      check: 'S7',
    },
    {
      name: 'a released token claims again',
      find: "return record.state === 'in-flight' ? acquireAgain(record, claim, now) : refuse(record, claim, now)",
      replace:
        "if (record.state === 'failed') return acquire(claim, record.attempt + 1, false, now)\n    return record.state === 'in-flight' ? acquireAgain(record, claim, now) : refuse(record, claim, now)",
      check: 'S7',
    },
    {
      name: 'another body takes a lapsed key over',
      find: "    case 'in-flight':\n      if (record.fingerprint !== claim.fingerprint) return refuse(record, claim, now)\n",
      replace: "    case 'in-flight':\n",
      check: 'S9',
    },
    {
      name: 'a lease never lapses',
      find: '      if (now < record.leaseUntil) return refuse(record, claim, now)\n',
      replace: '      if (now > 0) return refuse(record, claim, now)\n',
      check: 'L1',
    },
  ] as const
).map((mutant) => ({ ...mutant, layer: 'simulate' }))
