import { type Answer, whenever } from 'once-per-key/core'
import type { Decision, RequestEngine, RequestFacts, RequestRun } from 'once-per-key/http'
import { type HandlerSteps, handlerSteps } from './handler-steps.js'
import { type Content, type End, type Label, type Observed, type Told, textOf } from './history.js'
import type { VirtualClock } from './virtual-clock.js'

/** One request, and where the process that serves it stands. */
export interface Client {
  readonly index: number
  readonly scope: string
  readonly content: Content
  readonly arrivedAt: number
  process: 'awake' | 'stalled' | 'dead'
  stage: 'deciding' | 'running' | 'ending' | 'told'
  told: Told | null
  toldAt: number
  /** What the engine has said of its lease; `null`: nothing. */
  leaseLost: 'lapsed' | 'taken' | null
  /** When the last renewal was sent, and when the last confirmed one. */
  renewedAt: number
  confirmedAt: number
  readonly steps: HandlerSteps
  /** How many commands of steps it has sent. */
  sentSteps: number
  /** The end of a step that it has sent, and that was not confirmed yet. */
  unconfirmedStep: object | null
  /** The request goes to its engine. */
  readonly start: (engine: RequestEngine<string>) => void
  /** The handler takes its next step. */
  readonly step: (label: Label) => void
  /** The handler ends. */
  readonly end: (end: End) => void
}

export function createClient(
  index: number,
  scope: string,
  content: Content,
  clock: VirtualClock,
  record: (what: Observed) => void,
): Client {
  const arrivedAt = clock.now()
  let run: RequestRun | undefined

  const client: Client = {
    index,
    scope,
    content,
    arrivedAt,
    process: 'awake',
    stage: 'deciding',
    told: null,
    toldAt: arrivedAt,
    leaseLost: null,
    renewedAt: arrivedAt,
    confirmedAt: arrivedAt,
    steps: handlerSteps(index, record),
    sentSteps: 0,
    unconfirmedStep: null,
    step(label) {
      if (run === undefined) throw new Error(`request ${index} has no run to take a step`)
      client.steps.take(run.context, label)
    },
    start: (engine) => void whenever(engine.decide(factsOf(scope, content)), follow),
    end,
  }

  function follow(decision: Decision): void {
    switch (decision.action) {
      case 'execute': {
        run = decision.run
        client.stage = 'running'
        const { attempt, previousOutcome } = run.context
        record({ type: 'ran', by: index, attempt, previousOutcome })
        break
      }
      case 'replay':
        tell({ kind: 'success', text: textOf(decision.answer) })
        break
      case 'reject':
        tell({ kind: 'problem', code: decision.problem.code })
        break
      case 'bypass':
        throw new Error('a request with a key was not covered')
    }
  }

  function end(how: End): void {
    if (run === undefined) throw new Error(`request ${index} has no run to end`)
    client.stage = 'ending'
    record({ type: 'ended', by: index, end: how })
    if (how === 'no_answer') {
      void whenever(run.fail(), () => tell({ kind: 'failure' }))
      return
    }
    if (how === 'late_refusal') run.context.mayHaveEffect()
    const answer = how === 'success' ? successOf(index) : failureOf(how === 'breakdown' ? 500 : 422)
    void whenever(run.settle(answer), (settled) => {
      if (settled.action !== 'send') follow(settled)
      else tell(how === 'success' ? { kind: 'success', text: textOf(answer) } : { kind: 'failure' })
    })
  }

  function tell(told: Told): void {
    client.stage = 'told'
    client.told = told
    client.toldAt = clock.now()
    record({ type: 'told', by: index, told })
  }

  return client
}

/** What the handler of this request answers: no other answers the same. */
function successOf(index: number): Answer {
  const body = Buffer.from(`run ${index}`)
  return { status: 201, statusMessage: '', headers: [['Content-Type', 'text/plain']], body }
}

function failureOf(status: number): Answer {
  return { status, statusMessage: '', headers: [], body: Buffer.from('failed') }
}

function factsOf(scope: string, content: Content): RequestFacts<string> {
  return {
    request: scope,
    method: 'POST',
    target: '/payouts',
    rawHeaders: ['Idempotency-Key', 'order-1'],
    body: { content },
    bodyWasRead: true,
    isAbandoned: () => false,
  }
}
