import { mountedTwice } from '../core/index.js'
import { type RequestEngine, type RequestRun, waitFor } from '../http/index.js'
import { execute, otherResponse } from './execution.js'
import { type Call, factsOf } from './request.js'

/**
 * Carries out the decision on a request: passes it on unchanged, runs it, or responds instead of the handler.
 *
 * Rejects with what the handler threw, after its record was settled; with an IdempotencyError for misuse: the handler
 * did not run, and nothing was stored.
 */
export function respond<Req, Passed>(
  engine: RequestEngine<Req>,
  call: Call<Req>,
  passes: () => Passed,
  runs: (run: RequestRun) => Promise<Response> | Response,
): Promise<Response | Awaited<Passed>> {
  const responding = responded(engine, call, passes, runs)
  waitFor(call, responding.then(nothing, nothing)) // A client that leaves must not end its handler.
  return responding
}

async function responded<Req, Passed>(
  engine: RequestEngine<Req>,
  call: Call<Req>,
  passes: () => Passed,
  runs: (run: RequestRun) => Promise<Response> | Response,
): Promise<Response | Awaited<Passed>> {
  const { request } = call
  if (RUNNING.has(request)) throw mountedTwice()
  const decision = await engine.decide(await factsOf(engine, call))
  switch (decision.action) {
    case 'bypass':
      return await passes()
    case 'execute':
      waitFor(call, decision.run.ended())
      RUNNING.add(request)
      return await execute(engine, decision, call, runs).finally(() => RUNNING.delete(request))
    case 'reject':
      // The claim is given up after it.
      if (decision.problem.code === 'store_unavailable') waitFor(call, engine.idle())
      return otherResponse(engine, call, decision, decision.extraHeaders)
    case 'replay':
      return otherResponse(engine, call, decision, decision.extraHeaders)
  }
}

function nothing(): void {}

/** Requests whose handlers are running. */
const RUNNING = new WeakSet<Request>()
