import type { Mutant } from '../mutants/mutant.js'
import { stepsInPeace } from '../mutants/step-mutants.js'

const planted: readonly Omit<Mutant, 'layer'>[] = [
  {
    name: 'a second completion overwrites the answer',
    find: `    if (record.token !== own.token || record.state === 'failed') return createStaleChange(record, now, own)
    if (record.state === 'completed') return { record, reply: OK }`,
    replace: `    if (record.state !== 'completed' && (record.token !== own.token || record.state === 'failed')) return createStaleChange(record, now, own)`,
    check: 'S2',
  },
  {
    name: 'a live lease is ignored',
    find: '      if (now < record.leaseUntil) return refuse(record, claim, now)\n',
    replace: '',
    check: 'S1',
    scale: 0.04, // It makes many more states.
  },
  {
    name: "a stale owner's answer is sent",
    find: 'return this.#tell(explainLostRun(effect.record, this.#run.identity, this.#core.options))',
    replace: 'return this.#tell(SEND)',
    check: 'S3',
  },
  {
    name: 'an answer is sent before it is stored',
    find: "mustBeConfirmed }, { do: 'send complete', answer })",
    replace: `mustBeConfirmed }, ...(lease === 'held' ? [{ do: 'tell', end: 'own' } as const] : []), { do: 'send complete', answer })`,
    check: 'S3',
  },
  {
    name: 'an unconfirmed success is sent without a lease',
    find: "{ do: 'tell', end: state.lease === 'held' ? end : 'unconfirmed' }",
    replace: "{ do: 'tell', end }",
    check: 'S3',
  },
  {
    name: 'a completed key is claimed again',
    find: "    case 'completed':\n      return refuse(record, claim, now)\n",
    replace: "    case 'completed':\n      return takeOver(record as never, claim, now)\n",
    check: 'S4',
  },
  {
    name: 'a failing takeover forgets that the outcome is unknown',
    find: '  const uncertain = own.uncertain || (record?.uncertain ?? false)\n',
    replace: '  const uncertain = own.uncertain && !record?.uncertain\n',
    check: 'S5',
  },
  {
    name: 'mayHaveEffect is ignored',
    find: 'this.mergeFacts({ mayHaveEffect: true })',
    replace: 'this.mergeFacts({ mayHaveEffect: false })',
    check: 'S5',
  },
  {
    name: 'a breakdown counts as certain',
    find: "return { how: 'perhaps', because: thrown",
    replace: "return { how: 'certainly', because: thrown",
    check: 'S5',
  },
  {
    name: 'an end without an answer counts as certain',
    find: "return { how: 'perhaps', because: 'no_answer' }",
    replace: "return { how: 'certainly', because: 'no_answer' }",
    check: 'S5',
  },
  {
    name: 'a refusal counts as uncertain',
    find: "return { how: 'certainly', because: 'refused' }",
    replace: "return { how: 'perhaps', because: 'refused' }",
    check: 'S5',
  },
  {
    name: 'a claim whose reply is read after its lease runs all the same',
    find: 'const isLate = getMonotonicMs() >= sentAt +',
    replace: 'const isLate = getMonotonicMs() < sentAt - 0 *',
    check: 'S5',
  },
  {
    name: "the policy 'refuse' is ignored",
    find: "  if (claim.unknownOutcome === 'refuse' && !isMarked) return refuse(record, claim, now)\n",
    replace: '',
    check: 'S5',
  },
  {
    name: 'a completion is not fenced',
    find: "    if (record.token !== own.token || record.state === 'failed') return createStaleChange(record, now, own)\n    if (record.state === 'completed') return { record, reply: OK }\n",
    replace:
      "    if (record.state === 'failed') return createStaleChange(record, now, own)\n    if (record.state === 'completed') return { record, reply: OK }\n",
    check: 'S6',
  },
  {
    name: 'a release loses the attempt',
    find: '  const { attempt } = record ?? own\n',
    replace: '  const attempt = 0\n',
    check: 'S6',
  },
  {
    name: 'a takeover whose reply was lost is told as fresh',
    find: 'reply: createAcquiredReply(record.attempt, record.uncertain, record.steps)',
    replace: 'reply: createAcquiredReply(record.attempt, false, record.steps)',
    check: 'S7',
  },
  {
    name: 'a claim that is sent again is refused',
    find: "    return record.state === 'in-flight' ? acquireAgain(record, claim, now) : refuse(record, claim, now)\n",
    replace: '    return refuse(record, claim, now)\n',
    check: 'S7',
  },
  {
    name: 'a released token claims again',
    find: "    return record.state === 'in-flight' ? acquireAgain(record, claim, now) : refuse(record, claim, now)\n",
    replace: `    if (record.state === 'failed') return acquire(claim, record.attempt + 1, record.uncertain, now)
    return record.state === 'in-flight' ? acquireAgain(record, claim, now) : refuse(record, claim, now)
`,
    check: 'S7',
  },
  {
    name: 'a replay has a status of its own',
    find: '  return { ...answer, headers: answer.headers.concat([REPLAYED]) }\n',
    replace: '  return { ...answer, status: 200, headers: answer.headers.concat([REPLAYED]) }\n',
    check: 'S8',
  },
  {
    name: 'the fingerprint is ignored where a lease has lapsed',
    find: `      if (record.fingerprint !== claim.fingerprint) return refuse(record, claim, now)
      if (now < record.leaseUntil)`,
    replace: '      if (now < record.leaseUntil)',
    check: 'S9',
  },
  {
    name: "a mismatched request is shown the other's answer",
    find: 'answer: isOther ? null : record.answer',
    replace: 'answer: isOther && attempt > 1_000 ? null : record.answer',
    check: 'S9',
  },
  {
    name: "a mismatched request gets the other's answer",
    find: 'new Run(identity, this.#core,',
    replace: "new Run({ ...identity, fingerprint: 'f' }, this.#core,",
    check: 'S9',
  },
  {
    name: 'the scope is left out of the storage key',
    find: 'encodeNamePart(scope)',
    replace: "encodeNamePart('')",
    check: 'S9',
  },
  {
    name: 'the handler runs without a confirmed claim',
    find: "options.storeFailure === 'runUnprotected'",
    replace: "options.storeFailure !== 'runUnprotected'",
    check: 'S10',
  },
  {
    name: 'a silent store is waited for',
    find: 'startTimer(() => this.#onTimeout(), calls.timeoutMs)',
    replace: 'startTimer(() => this.#onTimeout(), 2 * calls.timeoutMs)',
    check: 'S10',
  },
  {
    name: 'a lease never lapses',
    find: '      if (now < record.leaseUntil) return refuse(record, claim, now)\n',
    replace: '      if (now < record.expiresAt) return refuse(record, claim, now)\n',
    check: 'L1',
  },
  {
    name: 'a claim that nobody runs is never released',
    find: 'this.#claims.giveUp(run, claim)\n',
    replace: '',
    check: 'L1',
  },
  {
    name: 'a late claim is not released',
    find: 'if (!claim.isReplied) claim.onLateReply = (late) => void this.#free(operation, late?.acquired === true)\n',
    replace: '',
    check: 'L1',
  },
  {
    name: 'a failure waits for its release for ever',
    find: "failure, end }, again, { do: 'check lease' })",
    replace: 'failure, end }, again)',
    check: 'L2',
  },
  {
    name: 'a client whose run has lost its record is told twice',
    find: "? toTransition({ ...waits, end: null }, ...pending, { do: 'tell', end: 'unconfirmed' })",
    replace:
      "? toTransition({ ...waits, end: 'unconfirmed' }, ...pending, { do: 'tell', end: 'unconfirmed' }, { do: 'check lease' })",
    check: 'L2',
  },
  {
    name: 'a failure during a step is never released',
    find: "case 'steps over':\n      return release(state, state, end)",
    replace: "case 'steps over':\n      return endRun(state, 'otherwise', ...tellOnce(end))",
    check: 'L2',
  },
  {
    name: 'a failure that is kept is told before it is stored',
    find: "return prependEffect({ do: 'claim made' }, stored)",
    replace: "return prependEffect({ do: 'tell', end: 'own' }, stored)",
    check: 'L2',
  },
]

/** Faults that show themselves only where several attempts meet: some of them after one particular fault more. */
export const mutants: readonly Mutant[] = [
  ...planted,
  // Without a fault: the few states of a short search have them.
  ...stepsInPeace.map((mutant) => ({ ...mutant, scale: 0.02 })),
].map((mutant) => ({ ...mutant, layer: 'explore' }))
