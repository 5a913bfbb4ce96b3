import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import * as core from 'once-per-key/core'
import type { runner } from 'once-per-key/run'
import ts from 'typescript'
import { type Fault, plant } from '../../verification/proof/mutants/planting.js'

/** Mistakes of a runner, each found by the plays. */
export const RUN_MUTANTS: readonly Fault[] = [
  {
    name: 'the scope does not count',
    find: 'const identity = { namespace, scope, key, fingerprint: computeInputFingerprint(input) }',
    replace: "const identity = { namespace, scope: 'all', key, fingerprint: computeInputFingerprint(input) }",
  },
  {
    name: 'another operation with the same key gets its result',
    find: 'const identity = { namespace, scope, key, fingerprint: computeInputFingerprint(input) }',
    replace: 'const identity = { namespace, scope, key, fingerprint: computeInputFingerprint(null) }',
  },
  {
    name: 'runners of two names meet',
    find: 'const identity = { namespace, scope, key, fingerprint: computeInputFingerprint(input) }',
    replace: "const identity = { namespace: 'run', scope, key, fingerprint: computeInputFingerprint(input) }",
  },
  {
    name: 'a refusal is swallowed',
    find: 'throw new RefusedError(claimed.code, claimed.retryAfterMs, false)',
    replace: 'return undefined',
  },
  {
    name: 'an unknown outcome is a success',
    find: "if (claimed.code === 'in_flight') signal?.throwIfAborted()",
    replace: "if (claimed.code === 'outcome_unknown') return undefined",
  },
  {
    name: 'a refusal runs the function all the same',
    find: 'throw new RefusedError(claimed.code, claimed.retryAfterMs, false)',
    replace: 'return work({ attempt: 1, previousOutcome: "none" } as never)',
  },
  {
    name: 'a run that lost its lease is a success',
    find: 'throw new RefusedError(end.code, end.retryAfterMs, true)',
    replace: 'return undefined',
  },
  {
    name: 'a run whose record has another result returns its own',
    find: "return end.action === 'send' ? kept.result : this.#readRecordedEnd(end)",
    replace: "return end.action === 'refuse' ? this.#readRecordedEnd(end) : kept.result",
  },
  {
    name: 'the attempt is not told',
    find: 'value = await work(this.#run.context)',
    replace: `value = await work(new Proxy(this.#run.context, {
      get: (context, name) => (name === 'attempt' ? 1 : Reflect.get(context, name, context)) }))`,
  },
  {
    name: 'the previous outcome is not told',
    find: 'value = await work(this.#run.context)',
    replace: `value = await work(new Proxy(this.#run.context, {
      get: (context, name) => (name === 'previousOutcome' ? 'none' : Reflect.get(context, name, context)) }))`,
  },
  {
    name: 'any throw is certain',
    find: "this.#run.fail('perhaps', 'no_answer')",
    replace: "this.#run.fail('certainly', 'certain_failure')",
  },
  {
    name: 'a CertainFailure leaves the outcome unknown',
    find: "if (isCertainFailure(error)) return this.#run.fail('certainly', 'certain_failure')",
    replace: "if (isCertainFailure(error)) return this.#run.fail('perhaps', 'no_answer')",
  },
  {
    name: '`isCertainFailure` is not asked',
    find: 'this.#terms.isCertainFailure(error)',
    replace: 'false',
  },
  {
    name: 'what the function throws is swallowed',
    find: 'throw error } const { kept',
    replace: 'return undefined } const { kept',
  },
  {
    name: 'a throw releases nothing',
    find: '} catch (error) { const end = await this.#fail(error)',
    replace: "} catch (error) { const end = { action: 'send' } as RunEnd",
  },
  {
    name: 'a result that cannot be kept is a failure',
    find: 'return { answer: NOT_KEPT, result: value }',
    replace: 'throw error',
  },
  {
    name: 'the first caller gets its result as it was returned',
    find: 'return { answer, result: this.#decodeAnswer(answer) }',
    replace: 'return { answer, result }',
  },
  {
    name: 'a call that was aborted before runs',
    find: 'const { signal } = operation signal?.throwIfAborted()',
    replace: 'const { signal } = operation',
  },
]

const require = createRequire(import.meta.url)
const FOLDER = fileURLToPath(new URL('../../src/run/', import.meta.url))
const SOURCES = new Map(
  readdirSync(FOLDER).map((name) => [`./${name}`.replace(/\.ts$/, '.js'), readFileSync(FOLDER + name, 'utf8')]),
)

/** The runner of today's sources, with the fault in it. */
export function plantedRunner(fault?: Fault): typeof runner {
  const planted = fault && plant(fault, SOURCES)
  const loaded = new Map<string, object>()
  const load = (name: string): object => {
    if (name === '../core/index.js') return core
    if (name.startsWith('node:')) return require(name)
    const known = loaded.get(name)
    if (known !== undefined) return known
    const exports = {}
    loaded.set(name, exports)
    const text = planted?.path === name ? planted.text : (SOURCES.get(name) as string)
    const compilerOptions = { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 }
    new Function('exports', 'require', ts.transpileModule(text, { compilerOptions }).outputText)(exports, load)
    return exports
  }
  return (load('./runner.js') as { runner: typeof runner }).runner
}
