import type { RequestFacts } from 'once-per-key/http'
import { runHandler } from './handlers.js'
import type { Request, Told } from './history.js'
import type { Instance } from './instance.js'
import type { World } from './world.js'

export interface Asking {
  readonly scope: string
  readonly key: string
  readonly content: number
  readonly isProbe?: boolean
}

/** Sends a request to an instance. `onTold` is asked once, when its client hears of it: `null`: the connection broke. */
export function ask(world: World, instance: Instance, asking: Asking, onTold: (told: Told | null) => void): Request {
  const { clock, observe } = world
  const stalledBeforeMs = instance.stalledMs
  const request: Request = {
    id: world.requests++,
    scope: asking.scope,
    key: asking.key,
    content: asking.content,
    instance: instance.id,
    isProbe: asking.isProbe ?? false,
    askedAt: clock.now,
    token: null,
    isLeft: false,
    leave() {},
    heard: null,
    asked: null,
    run: null,
  }
  world.keys.set(`${asking.scope} ${asking.key}`, asking)
  const hear = (told: Told | null) => {
    if (!request.isLeft) onTold(told)
  }
  instance.open.set(request, () => hear(null))
  clock.plan(clock.now, () => void serve().catch(unanswered), instance)

  async function serve(): Promise<void> {
    observe({ at: clock.now, type: 'asked', request })
    const decision = await world.inHand.of(request, () => instance.engine.decide(factsOf(request)))
    switch (decision.action) {
      case 'execute':
        return runHandler(world, instance, request, decision.run, tell)
      case 'replay':
        return tell({ type: 'replayed', answer: decision.answer })
      case 'reject':
        return tell({ type: 'problem', code: decision.problem.code })
      case 'bypass':
        throw new Error('a request with a key is covered')
    }
  }

  function tell(told: Told): void {
    observe({ at: clock.now, type: 'told', request, told, stalledMs: instance.stalledMs - stalledBeforeMs })
    instance.open.delete(request)
    hear(told)
  }

  /** Whoever was to answer has failed: the request stays without an answer, which is found at the end. */
  function unanswered(): void {}

  return request
}

function factsOf(request: Request): RequestFacts<Request> {
  return {
    request,
    method: 'POST',
    target: '/payouts',
    rawHeaders: ['Idempotency-Key', request.key],
    body: { amount: request.content },
    bodyWasRead: true,
    isAbandoned: () => request.isLeft,
  }
}
