import type { Mutant } from '../mutants/mutant.js'

const machine = { file: 'src/core/machine.ts', layer: 'explore' } as const
const engine = { file: 'src/core/engine.ts', layer: 'explore' } as const
const execution = { file: 'src/core/execution.ts', layer: 'explore' } as const

/** Faults that show themselves only where several attempts meet: some of them after one particular fault more. */
export const mutants: readonly Mutant[] = [
  {
    ...machine,
    name: 'a live lease is ignored',
    find: '      if (now < record.leaseUntil) return refuse(record, now)\n',
    replace: '',
    check: 'S1',
  },
  {
    ...machine,
    name: 'a second completion overwrites the answer',
    find: `    if (record.token !== own.token || record.state === 'failed') return stale(record, now)
    if (record.state === 'completed') return { record, reply: OK }`,
    replace: `    if (record.state !== 'completed' && (record.token !== own.token || record.state === 'failed')) return stale(record, now)`,
    check: 'S2',
  },
  {
    ...execution,
    name: "a stale owner's answer is sent",
    find: '      return verdictAfterLoss(done.record, identity, options)\n',
    replace: "      return { action: 'send' }\n",
    check: 'S3',
  },
  {
    ...execution,
    name: 'an answer is sent before it is stored',
    find: "    const done = await ask('complete', identity, asked, storeTimeoutMs, emit)\n",
    replace: `    const confirmed = ask('complete', identity, asked, storeTimeoutMs, emit)
    void confirmed.then((late) => late !== null && close(late, completed))
    if (!lost) return { action: 'send' }
    const done = await confirmed
`,
    check: 'S3',
  },
  {
    ...execution,
    name: 'an unconfirmed success is sent without a lease',
    find: "    return lost || monotonicNow() >= confirmedAt + leaseMs ? unconfirmed() : { action: 'send' }\n",
    replace: "    return { action: 'send' }\n",
    check: 'S3',
  },
  {
    ...machine,
    name: 'a completed key is claimed again',
    find: "    case 'completed':\n      return refuse(record, now)\n",
    replace: "    case 'completed':\n      return takeOver(record, claim, now)\n",
    check: 'S4',
  },
  {
    ...machine,
    name: 'a failing takeover forgets that the outcome is unknown',
    find: '  const uncertain = own.uncertain || (record?.uncertain ?? false)\n',
    replace: '  const uncertain = own.uncertain && !record?.uncertain\n',
    check: 'S5',
  },
  {
    ...execution,
    name: 'mayHaveEffect is ignored',
    find: '      mayHaveHadEffect = true\n',
    replace: '      mayHaveHadEffect = false\n',
    check: 'S5',
  },
  {
    ...engine,
    name: 'a claim whose reply is read after its lease runs all the same',
    find: 'const isLate = begun?.acquired && monotonicNow() >= sentAt + leaseMs\n',
    replace: 'const isLate = begun?.acquired && monotonicNow() < sentAt\n',
    check: 'S5',
  },
  {
    ...machine,
    name: "the policy 'refuse' is ignored",
    find: "  return claim.unknownOutcome === 'refuse' ? refuse(record, now) : acquire(claim, record.attempt + 1, true, now)\n",
    replace: '  return acquire(claim, record.attempt + 1, true, now)\n',
    check: 'S5',
  },
  {
    ...machine,
    name: 'a completion is not fenced',
    find: "    if (record.token !== own.token || record.state === 'failed') return stale(record, now)\n",
    replace: "    if (record.state === 'failed') return stale(record, now)\n",
    check: 'S6',
  },
  {
    ...machine,
    name: 'a release loses the attempt',
    find: '  const { attempt } = record ?? own\n',
    replace: '  const attempt = 0\n',
    check: 'S6',
  },
  {
    ...machine,
    name: 'a takeover whose reply was lost is told as fresh',
    find: '  return { record: extended(record, claim, now), reply: acquired(record.attempt, record.uncertain) }\n',
    replace: '  return { record: extended(record, claim, now), reply: acquired(record.attempt, false) }\n',
    check: 'S7',
  },
  {
    ...machine,
    name: 'a claim that is sent again is refused',
    find: "    return record.state === 'in-flight' ? acquireAgain(record, claim, now) : refuse(record, now)\n",
    replace: '    return refuse(record, now)\n',
    check: 'S7',
  },
  {
    ...machine,
    name: 'a released token claims again',
    find: "    return record.state === 'in-flight' ? acquireAgain(record, claim, now) : refuse(record, now)\n",
    replace: `    if (record.state === 'failed') return acquire(claim, record.attempt + 1, record.uncertain, now)
    return record.state === 'in-flight' ? acquireAgain(record, claim, now) : refuse(record, now)
`,
    check: 'S7',
  },
  {
    name: 'a replay has a status of its own',
    file: 'src/core/answer.ts',
    find: '  return { ...answer, headers: [...answer.headers, REPLAYED] }\n',
    replace: '  return { ...answer, status: 200, headers: [...answer.headers, REPLAYED] }\n',
    layer: 'explore',
    check: 'S8',
  },
  {
    ...machine,
    name: 'the fingerprint is ignored where a lease has lapsed',
    find: `      if (record.fingerprint !== claim.fingerprint) return refuse(record, now)
      if (now < record.leaseUntil)`,
    replace: '      if (now < record.leaseUntil)',
    check: 'S9',
  },
  {
    ...engine,
    name: "a mismatched request gets the other's answer",
    file: 'src/core/verdict.ts',
    find: "  if (bound !== null && bound !== fingerprint) return rejected('mismatched', options)\n",
    replace: '',
    check: 'S9',
  },
  {
    name: 'the scope is left out of the storage key',
    file: 'src/core/key.ts',
    find: 'encodeURIComponent(scope)',
    replace: "encodeURIComponent('')",
    layer: 'explore',
    check: 'S9',
  },
  {
    ...engine,
    name: 'the handler runs without a confirmed claim',
    find: "options.storeFailure === 'runUnprotected'",
    replace: "options.storeFailure !== 'runUnprotected'",
    check: 'S10',
  },
  {
    name: 'a silent store is waited for',
    file: 'src/core/commands.ts',
    find: '    }, timeoutMs).unref()\n',
    replace: '    }, 2 * timeoutMs).unref()\n',
    layer: 'explore',
    check: 'S10',
  },
  {
    ...machine,
    name: 'a lease never lapses',
    find: '      if (now < record.leaseUntil) return refuse(record, now)\n',
    replace: '      if (now < record.expiresAt) return refuse(record, now)\n',
    check: 'L1',
  },
  {
    ...engine,
    name: 'a claim that nobody runs is never released',
    find: '    void giveUp(asking, pending)\n',
    replace: '    pending.catch(() => {})\n',
    check: 'L1',
  },
  {
    ...engine,
    name: 'a late claim is not released',
    find: '    if (!answered) void late?.then(() => free(asking))\n',
    replace: '',
    check: 'L1',
  },
  {
    ...execution,
    name: 'a failure waits for its release for ever',
    find: "    void repeat('release', command, asked, (late) => close(late, failed))\n",
    replace: `    await repeat('release', command, asked, (late) => close(late, failed))
    await new Promise(() => {})
`,
    check: 'L2',
  },
]
