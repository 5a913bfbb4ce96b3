import type { Mutant } from '../mutants/mutant.js'

const ENGINE = 'src/core/engine.ts'
const EXECUTION = 'src/core/execution.ts'
const COMMANDS = 'src/core/commands.ts'

/** Faults around the rules: in the engine, its runs, its commands. */
export const engineMutants: readonly Mutant[] = (
  [
    {
      name: 'a lease is never renewed',
      file: EXECUTION,
      find: '      renewing = renew(now)\n',
      replace: '',
      check: 'S1',
    },
    {
      name: 'an unconfirmed success is sent after the lease was lost',
      file: EXECUTION,
      find: "return lost || monotonicNow() >= confirmedAt + leaseMs ? unconfirmed() : { action: 'send' }",
      replace: "return { action: 'send' }",
      check: 'S2',
      // It takes a stall, a successor's success and an outage, one upon the other.
      scale: 0.1,
    },
    {
      name: 'a success is sent before it is stored',
      file: EXECUTION,
      find: 'settled ??= functions.isSuccess(answer, request) ? complete(answer) : release()',
      replace:
        "if (functions.isSuccess(answer, request)) { void complete(answer); settled ??= Promise.resolve({ action: 'send' }) } else settled ??= release()",
      check: 'S3',
    },
    {
      name: "a stale owner's answer is sent",
      file: EXECUTION,
      find: 'return verdictAfterLoss(done.record, identity, options)',
      replace: "return { action: 'send' }",
      check: 'S3',
    },
    {
      name: 'a pending completion is not tried again',
      file: EXECUTION,
      find: 'const done = await askAgain(name, identity, command, asked, sentAt + maxRunMs, storeTimeoutMs, emit)',
      replace: 'const done = (await null) as Done | null',
      check: 'S3',
    },
    {
      name: 'mayHaveEffect is ignored',
      file: EXECUTION,
      find: '      mayHaveHadEffect = true\n',
      replace: '',
      check: 'S5',
    },
    {
      name: 'the memory store forgets failures',
      file: 'adapters/memory/memory-store.ts',
      find: 'this.#records.find(key) ?? this.#failures.peek(key) ?? null',
      replace: 'this.#records.find(key) ?? null',
      check: 'S6',
    },
    {
      name: 'a replay is not the answer',
      file: 'src/core/answer.ts',
      find: 'return { ...answer, headers: [...answer.headers, REPLAYED] }',
      replace: 'return { ...answer, status: 200, headers: [...answer.headers, REPLAYED] }',
      check: 'S8',
    },
    {
      name: 'the scope is left out of the storage key',
      file: 'src/core/key.ts',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a source text
      find: 'const name = `${encodeURIComponent(scope)}:${encodeURIComponent(key)}`',
      replace: 'const name = encodeURIComponent(key)',
      check: 'S9',
    },
    {
      name: 'a mismatched request is given the answer',
      file: 'src/core/verdict.ts',
      find: "  if (bound !== null && bound !== fingerprint) return rejected('mismatched', options)\n",
      replace: '',
      check: 'S9',
    },
    {
      name: 'an unconfirmed claim runs the handler',
      file: ENGINE,
      find: "options.storeFailure === 'runUnprotected'",
      replace: 'options.maxRunMs > 0',
      check: 'S10',
    },
    {
      name: 'a claim that is confirmed after its lease runs the handler',
      file: ENGINE,
      find: 'if (begun === null || isLate) {',
      replace: 'if (begun === null) {',
      check: 'S10',
    },
    {
      name: 'a client that leaves ends the run',
      file: ENGINE,
      find: "    return { action: 'execute', execution }\n",
      replace:
        "    const watch = () => { asker.isAbandoned() ? void execution.fail() : setTimeout(watch, 50).unref() }\n    watch()\n    return { action: 'execute', execution }\n",
      check: 'S11',
    },
    {
      name: 'a late error of the handler counts as its end',
      file: EXECUTION,
      find: '      settled ??= release()\n      await settled',
      replace: '      settled = release()\n      await settled',
      check: 'S11',
    },
    {
      name: 'a claim that was given up is not released',
      file: ENGINE,
      find: '    void giveUp(asking, pending)\n',
      replace: '',
      check: 'L1',
    },
    {
      name: 'a claim that was given up is released only once',
      file: ENGINE,
      find: '    if (!answered) void late?.then(() => free(asking))\n',
      replace: '',
      check: 'L1',
    },
    {
      name: 'a waiter whose client has left keeps its claim',
      file: ENGINE,
      find: "        void giveUp(asking)\n        return reject('in_flight')",
      replace: "        return reject('in_flight')",
      check: 'L1',
    },
    {
      name: 'a handler that never ends keeps its lease for ever',
      file: EXECUTION,
      find: 'const inTime = now < sentAt + maxRunMs',
      replace: 'const inTime = now > 0',
      check: 'L1',
    },
    {
      name: 'a command has no time limit',
      file: COMMANDS,
      find: '    }, timeoutMs).unref()\n',
      replace: '    }, 2 ** 30).unref()\n',
      check: 'L2',
    },
    {
      name: 'idle never resolves',
      file: ENGINE,
      find: '    for (const resolve of whenIdle) resolve()\n',
      replace: '',
      check: 'L3',
    },
    {
      name: 'a completed run is never over',
      file: EXECUTION,
      find: '      succeeded()\n      end()\n',
      replace: '      succeeded()\n',
      check: 'L3',
    },
    {
      name: "a command's time limit keeps the process alive",
      file: COMMANDS,
      find: '    }, timeoutMs).unref()\n',
      replace: '    }, timeoutMs)\n',
      check: 'L3',
    },
  ] as const satisfies readonly Omit<Mutant, 'layer'>[]
).map((mutant) => ({ ...mutant, layer: 'simulate' }))
