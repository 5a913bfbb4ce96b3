import { Buffer } from 'node:buffer'
import type { Answer } from '../../core/record/record.js'
import {
  type Problem,
  type ProblemCode,
  type ProblemStatuses,
  type RenderProblem,
  toProblemBody,
} from '../options/problem.js'

/** An entry in a catalogue of problems. */
export interface ProblemEntry {
  /** 400 to 599. */
  readonly status: number
  /** Short, and always the same. */
  readonly title: string
  readonly detail: string
  /** Whether the same request may succeed later: `X-Should-Retry`. */
  readonly retry: boolean
}

/** Problems by their code: for those that your own binding or receiver adds. */
export type ProblemCatalogue<Code extends string = string> = Readonly<Record<Code, ProblemEntry>>

/**
 * The engine's own problems. `in_flight` and the other conflicts share the status 409 but need opposite reactions: the
 * code and the headers tell them apart.
 */
export const problemCatalogue: ProblemCatalogue<ProblemCode> = {
  key_missing: {
    status: 400,
    title: 'An idempotency key is required',
    detail: 'Send a key that you choose: a new one for each operation, and the same one for each retry of it.',
    retry: false,
  },
  key_invalid: {
    status: 400,
    title: 'The idempotency key is invalid',
    detail: 'A key is one line of 1 to 255 characters without control characters.',
    retry: false,
  },
  body_malformed: {
    status: 400,
    title: 'The body is malformed',
    detail: 'The body is not the JSON that its content type announces.',
    retry: false,
  },
  body_too_deep: {
    status: 400,
    title: 'The body is nested too deeply',
    detail: 'Nest at most 1,000 levels.',
    retry: false,
  },
  body_too_large: {
    status: 413,
    title: 'The body is too large',
    detail: 'It has more bytes than are read here.',
    retry: false,
  },
  content_type_unsupported: {
    status: 415,
    title: 'The content type is not supported',
    detail: 'Send the body in a content type that this API accepts.',
    retry: false,
  },
  in_flight: {
    status: 409,
    title: 'A request with this idempotency key is in flight',
    detail: 'The first request has not ended yet. To get its answer, send the same request again after a short delay.',
    retry: true,
  },
  mismatched: {
    status: 409,
    title: 'The idempotency key was used for another request',
    detail:
      'Method, path, query or body differ from the first request with this key, which has run, or may have. Use a new key for a new ' +
      'operation. To repeat the first one, send it unchanged, with this key.',
    retry: false,
  },
  answer_not_kept: {
    status: 409,
    title: 'The operation succeeded, but its answer was not kept',
    detail: 'The operation is not run again. Read its result from the API that provides it.',
    retry: false,
  },
  outcome_unknown: {
    status: 409,
    title: 'The outcome of an earlier attempt is unknown',
    detail:
      'The earlier attempt may have had its effect, so the operation is not run again. Find out before you use a new key.',
    retry: false,
  },
  transaction_missing: {
    status: 500,
    title: 'The outcome of the operation is unknown',
    detail:
      'The service cannot say what this request did, so its result was withheld. Find out whether it had its effect before you use a new ' +
      'key.',
    retry: false,
  },
  key_expired: {
    status: 409,
    title: 'The idempotency key has expired',
    detail:
      'The operation was first sent so long ago that its record may be gone, so it is not run. Find out whether it had its ' +
      'effect before you use a new key.',
    retry: false,
  },
  store_unavailable: {
    status: 503,
    title: 'Idempotency keys cannot be checked at the moment',
    detail: 'This request was not run. Send it again with the same key after a short delay.',
    retry: true,
  },
}

/** Sent to the client instead of a success that could not be stored. */
export const MAY_HAVE_RUN =
  'The operation may have been carried out, but its result could not be stored. Send the same request with the same key after ' +
  'a short delay; never use a new key for it.'

/** One of the engine's own problems, with the options applied. */
export function createProblem(
  code: ProblemCode,
  options: { readonly retryAfterMs: number; readonly problemStatuses: ProblemStatuses },
  detail?: string,
): Problem {
  const retryAfterMs = problemCatalogue[code].retry ? options.retryAfterMs : undefined
  return createProblemFrom(problemCatalogue, code, { status: options.problemStatuses[code], detail, retryAfterMs })
}

/** Values of one problem that replace the catalogue's. */
export interface ProblemTerms {
  readonly status?: number | undefined
  readonly detail?: string | undefined
  /** In milliseconds: sent as `Retry-After`, rounded up to seconds. If absent, the header is not sent. */
  readonly retryAfterMs?: number | undefined
}

/**
 * A problem of a catalogue. Its `type` is `urn:once-per-key:problem:` and the code.
 *
 * @example
 * const catalogue = { path_unknown: { status: 404, title: 'Not found', detail: 'See the API reference.', retry: false } }
 * const answer = problemAnswer(problemFrom(catalogue, 'path_unknown'))
 */
export function createProblemFrom<Code extends string>(
  catalogue: ProblemCatalogue<Code>,
  code: Code,
  { status, detail, retryAfterMs }: ProblemTerms = {},
): Problem<Code> {
  const entry = catalogue[code]
  return {
    code,
    type: `urn:once-per-key:problem:${code}`,
    title: entry.title,
    status: status ?? entry.status,
    detail: detail ?? entry.detail,
    retryAfterSeconds: retryAfterMs === undefined ? null : Math.max(1, Math.ceil(retryAfterMs / 1_000)),
    shouldRetry: entry.retry,
  }
}

/** The problem as a response: `application/problem+json` (RFC 9457 §3), or the format of `rendered`. */
export function toProblemAnswer(problem: Problem<string>, rendered?: ReturnType<RenderProblem<never>>): Answer {
  const { status, retryAfterSeconds, shouldRetry, documentation } = problem
  const body = rendered?.body ?? toProblemBody(problem)
  const headers: [string, string][] = [['Content-Type', rendered?.contentType ?? 'application/problem+json']]
  if (retryAfterSeconds !== null) headers.push(['Retry-After', String(retryAfterSeconds)])
  // Generated SDKs obey this header; without it they retry every 409.
  headers.push(['X-Should-Retry', String(shouldRetry)])
  if (documentation !== undefined) headers.push(['Link', `<${documentation}>; rel="describedby"`])
  return {
    status,
    statusMessage: '',
    headers,
    body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  }
}
