import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HeaderPairs, RequestEngine, RequestRun } from '../http/index.js'
import { HeldResponse } from './held-response.js'
import { sendAnswer } from './send.js'

/** A response of Node's, and whose it is. */
export interface Holding<Req> {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** The request as the framework has it. */
  readonly request: Req
  /** Hears that the answer was stored, and could not be sent. */
  readonly onError: (error: unknown) => void
}

/**
 * Holds a response below its framework, until its run is settled.
 *
 * Rejects with IdempotencyError `response_unsupported`: the run has failed.
 */
export async function hold<Req>(
  engine: RequestEngine<Req>,
  run: RequestRun,
  extraHeaders: HeaderPairs,
  { req, res, request, onError }: Holding<Req>,
): Promise<HeldResponse> {
  try {
    return new HeldResponse(req, res, run, extraHeaders, { sendOther }, onError)
  } catch (error) {
    await run.fail()
    throw error
  }

  function sendOther(
    ...[leaving, other]: Parameters<ConstructorParameters<typeof HeldResponse>[4]['sendOther']>
  ): void {
    const isReplay = other.action === 'replay'
    const answer = isReplay ? other.answer : engine.answerOf(other.problem, request)
    sendAnswer(leaving.req, leaving.res, answer, isReplay, leaving.extraHeaders, leaving.outlet)
  }
}
