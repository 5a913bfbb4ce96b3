import type { Identity } from '../core/record/identity.js'
import type { Answer } from '../core/record/record.js'
import type { IdempotencyContext } from '../core/run/context.js'
import type { Decision } from './engine/decision.js'
import { type Asker, createRequestEngine, type RequestEngine } from './engine/request-engine.js'
import type { RequestRun } from './engine/request-run.js'
import type { Settled } from './engine/settled.js'
import type { IdempotencyOptions } from './options/options.js'
import type { RequestFacts } from './request/facts.js'

/** @deprecated What 0.1 gave to a binding: the run and the handler's context in one object. */
export interface Execution
  extends IdempotencyContext,
    Pick<RequestRun, 'maxAnswerBytes' | 'keepsBody' | 'willFailCertainly'> {
  settle(answer: Answer, terms?: { readonly confirmed?: boolean }): Promise<Settled>
  fail(): Promise<void>
}

type Execute = Extract<Decision, { action: 'execute' }>
/** @deprecated `Decision`, with the run under its old name. */
export type OldDecision = Exclude<Decision, Execute> | (Execute & { readonly execution: Execution })

/** @deprecated `RequestEngine`, made by `createRequestEngine`. */
export interface OldEngine<Req>
  extends Omit<RequestEngine<Req>, 'decide' | 'decideFor' | 'claim' | 'during' | 'readsBody'> {
  decide(facts: RequestFacts<Req>): Promise<OldDecision>
  claim(identity: Identity, asker: Asker<Req>): Promise<Exclude<OldDecision, { action: 'bypass' }>>
}

/** The engine of 0.1, which only returned promises; kept for one minor version. */
export function createOldEngine<Req>(options: IdempotencyOptions<Req>): OldEngine<Req> {
  const engine = createRequestEngine(options)
  return {
    decide: async (facts) => inOldWords(await engine.decide(facts)),
    claim: async (identity, asker) => inOldWords(await engine.claim(identity, asker)),
    answerOf: (problem, request) => engine.answerOf(problem, request),
    inspect: (name) => engine.inspect(name),
    unknown: () => engine.unknown(),
    resolve: (name, as) => engine.resolve(name, as),
    idle: () => engine.idle(),
  }
}

function inOldWords<Other extends { readonly action: Exclude<Decision['action'], 'execute'> }>(
  decision: Other | Execute,
): Other | (Execute & { readonly execution: Execution }) {
  if (decision.action !== 'execute') return decision as Other
  const execute = decision as Execute
  return { ...execute, execution: new OldExecution(execute.run) }
}

class OldExecution implements Execution {
  readonly key: string
  readonly scope: string
  readonly attempt: number
  readonly previousOutcome: IdempotencyContext['previousOutcome']
  readonly maxAnswerBytes: number
  readonly #run: RequestRun
  #settled: Promise<Settled> | undefined

  constructor(run: RequestRun) {
    const { key, scope, attempt, previousOutcome } = run.context
    this.key = key
    this.scope = scope
    this.attempt = attempt
    this.previousOutcome = previousOutcome
    this.maxAnswerBytes = run.maxAnswerBytes
    this.#run = run
  }

  get signal(): AbortSignal {
    return this.#run.context.signal
  }

  get mayHaveEffect(): () => void {
    return this.#run.context.mayHaveEffect
  }

  get deriveKey(): (label: string) => string {
    return this.#run.context.deriveKey
  }

  keepsBody(byteLength: number, contentType: unknown): boolean {
    return this.#run.keepsBody(byteLength, contentType)
  }

  willFailCertainly(does: boolean): void {
    this.#run.willFailCertainly(does)
  }

  settle(answer: Answer, terms?: { readonly confirmed?: boolean }): Promise<Settled> {
    this.#settled ??= Promise.resolve(this.#run.settle(answer, terms))
    return this.#settled
  }

  async fail(): Promise<void> {
    this.#settled ??= Promise.resolve(this.#run.fail())
    await this.#settled
  }
}
