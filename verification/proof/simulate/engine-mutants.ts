import type { Mutant } from '../mutants/mutant.js'

/** Faults around the rules: in the engine, its runs, its commands. */
export const engineMutants: readonly Mutant[] = (
  [
    {
      name: 'a lease is never renewed',
      find: 'if (now < this.until && this.#renews && now >= this.#renewAt) this.#renewOrWait(now)',
      replace: 'if (now >= this.#renewAt) this.#renewAt = now + this.#leaseMs / 3',
      check: 'S1',
    },
    {
      name: 'an unconfirmed success is sent after the lease was lost',
      find: "{ do: 'tell', end: state.lease === 'held' ? end : 'unconfirmed' }",
      replace: "{ do: 'tell', end }",
      check: 'S2',
      // It takes a stall, a successor's success and an outage, one upon the other.
      scale: 0.1,
    },
    {
      name: 'a success is sent before it is stored',
      find: '? run.complete(toStoredAnswer(answer as Answer, functions.keepHeader), mustBeConfirmed)\n',
      replace:
        "? (void run.complete(toStoredAnswer(answer as Answer, functions.keepHeader), mustBeConfirmed), { action: 'send' as const })\n",
      check: 'S3',
    },
    {
      name: "a stale owner's answer is sent",
      find: 'return this.#tell(explainLostRun(effect.record, this.#run.identity, this.#core.options))',
      replace: 'return this.#tell(SEND)',
      check: 'S3',
    },
    {
      name: 'a pending completion is not tried again',
      find: 'return this.#sendAgain(effect.isAwaited)',
      replace: "return void Promise.resolve().then(() => this.#run.on({ type: 'given up' }))",
      check: 'S3',
    },
    {
      name: 'mayHaveEffect is ignored',
      find: 'this.mergeFacts({ mayHaveEffect: true })',
      replace: '',
      check: 'S5',
    },
    {
      name: 'a failure of which nobody says that it is certain counts as certain',
      find: "'declared' } : { uncertain: true, because }",
      replace: "'declared' } : { uncertain: false, because }",
      check: 'S5',
    },
    {
      name: 'what is said of a failure hides an earlier effect',
      find: "if (facts.mayHaveEffect || facts.hasStep) return { uncertain: true, because: 'may_have_effect' }",
      replace: "if (how === 'perhaps' && facts.mayHaveEffect) return { uncertain: true, because: 'may_have_effect' }",
      check: 'S5',
    },
    {
      name: 'a success is not withheld where its storing is not confirmed',
      find: 'return mustBeConfirmed',
      replace: 'return mustBeConfirmed && answer.status === 0',
      check: 'S3',
    },
    {
      name: 'the memory store forgets failures',
      find: 'return this.#index.peek(key, NO_OPTIONS)',
      replace: `const found = this.#index.peek(key)
    return found?.state === 'failed' ? undefined : found`,
      check: 'S6',
    },
    {
      name: 'a replay is not the answer',
      find: 'return { ...answer, headers: answer.headers.concat([REPLAYED]) }',
      replace: 'return { ...answer, status: 200, headers: answer.headers.concat([REPLAYED]) }',
      check: 'S8',
    },
    {
      name: 'the scope is left out of the storage key',
      find: 'const name = encodeNamePart(scope)',
      replace: "const name = 'all'",
      check: 'S9',
    },
    {
      name: 'a mismatched request is given the answer',
      find: 'new Run(identity, this.#core,',
      replace: "new Run({ ...identity, fingerprint: 'f' }, this.#core,",
      check: 'S9',
    },
    {
      name: 'an unconfirmed claim runs the handler',
      find: "options.storeFailure === 'runUnprotected'",
      replace: 'options.maxRunMs > 0',
      check: 'S10',
    },
    {
      name: 'a claim that is confirmed after its lease runs the handler',
      find: 'return isLate ? null : reply',
      replace: 'return isLate ? reply : reply',
      check: 'S10',
    },
    {
      name: 'a client that leaves ends the run',
      find: 'run: new JudgedRun(claimed.run, asker.request, identity, this.#rules)',
      replace:
        'run: ((run) => {\n      const watch = () => { asker.isAbandoned() ? void run.fail() : setTimeout(watch, 50).unref() }\n      watch()\n      return run\n    })(new JudgedRun(claimed.run, asker.request, identity, this.#rules))',
      check: 'S11',
    },
    {
      name: 'a claim that was given up is not released',
      find: 'this.#claims.giveUp(run, claim)\n',
      replace: '',
      check: 'L1',
    },
    {
      name: 'a claim that was given up is released only once',
      find: 'if (!claim.isReplied) claim.onLateReply = (late) => void this.#free(operation, late?.acquired === true)\n',
      replace: '',
      check: 'L1',
    },
    {
      name: 'a waiter whose client has left keeps its claim',
      find: "claims.giveUp(operation, claim)\n      return { kind: 'given up', notRun: createInFlightRefusal(leaseMs, options) }",
      replace: "return { kind: 'given up', notRun: createInFlightRefusal(leaseMs, options) }",
      check: 'L1',
    },
    {
      name: 'a handler that never ends keeps its lease for ever',
      find: 'this.until = since + maxRunMs',
      replace: 'this.until = Number.POSITIVE_INFINITY',
      check: 'L1',
    },
    {
      name: 'a command has no time limit',
      find: 'startTimer(() => this.#onTimeout(), calls.timeoutMs)',
      replace: 'startTimer(() => this.#onTimeout(), 2 ** 30)',
      check: 'L2',
    },
    {
      name: 'idle never resolves',
      find: '    for (const resolve of this.#whenIdle) resolve()\n',
      replace: '',
      check: 'L3',
    },
    {
      name: 'a completed run is never over',
      find: "{ do: 'wake', answer }, { do: 'end' }, ...told",
      replace: "{ do: 'wake', answer }, ...told",
      check: 'L3',
    },
    {
      name: 'a deadline keeps the process alive',
      find: 'Math.max(1, Math.ceil(ms))).unref()',
      replace: 'Math.max(1, Math.ceil(ms)))',
      check: 'L3',
    },
  ] as const satisfies readonly Omit<Mutant, 'layer'>[]
).map((mutant) => ({ ...mutant, layer: 'simulate' }))
