import { Buffer } from 'node:buffer'
import type { Answer } from './record.js'

/** Errors that a client can cause. Closed: a new one is a minor release. */
export type ProblemCode =
  | 'key_missing'
  | 'key_invalid'
  | 'body_too_deep'
  | 'in_flight'
  | 'mismatched'
  | 'answer_not_kept'
  | 'outcome_unknown'
  | 'store_unavailable'

/** A refusal, as RFC 9457 describes one, with what its headers say. */
export interface Problem {
  readonly code: ProblemCode
  /** A URN that identifies the code. */
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  /** `Retry-After`: whole seconds, at least 1; `null`: the same request will not succeed by waiting. */
  readonly retryAfterSeconds: number | null
}

/** Another shape for a problem's body; an object is sent as JSON. Status and headers stay. */
export type RenderProblem<Req> = (
  problem: Problem,
  request: Req,
) => { readonly contentType?: string; readonly body: string | object }

/** Statuses in place of the catalogue's. */
export type ProblemStatuses = Readonly<Partial<Record<ProblemCode, number>>>

/**
 * The statuses of the IETF draft (draft-ietf-httpapi-idempotency-key-header §2.7): a key that is reused with another
 * request is 422.
 */
export const ietfDraft: ProblemStatuses = Object.freeze({ key_missing: 400, in_flight: 409, mismatched: 422 })

interface Entry {
  readonly status: number
  readonly title: string
  readonly detail: string
  readonly retry: boolean
}

/** The catalogue. Two conflicts, one status, opposite advice: the code and the headers tell them apart. */
const CATALOGUE: Readonly<Record<ProblemCode, Entry>> = {
  key_missing: {
    status: 400,
    title: 'An idempotency key is required',
    detail: 'Send a key of your own choice, new for each operation, so that it can be retried safely.',
    retry: false,
  },
  key_invalid: {
    status: 400,
    title: 'The idempotency key is invalid',
    detail: 'A key is one line of 1 to 255 characters without control characters.',
    retry: false,
  },
  body_too_deep: {
    status: 400,
    title: 'The body is nested too deeply',
    detail: 'Nest at most 1,000 levels.',
    retry: false,
  },
  in_flight: {
    status: 409,
    title: 'A request with this idempotency key is in flight',
    detail: 'It has not ended yet. Send the same request again after a short delay to get its answer.',
    retry: true,
  },
  mismatched: {
    status: 409,
    title: 'The idempotency key was used for another request',
    detail:
      'Method, path, query or body differ from the first request with this key. Use a new key for a new operation.',
    retry: false,
  },
  answer_not_kept: {
    status: 409,
    title: 'The operation succeeded, but its answer was not kept',
    detail: 'It is not run again. Look its result up where the operation keeps it.',
    retry: false,
  },
  outcome_unknown: {
    status: 409,
    title: 'The outcome of an earlier attempt is unknown',
    detail:
      'It was interrupted and may have had its effect, so it is not run again. Find out before you use a new key.',
    retry: false,
  },
  store_unavailable: {
    status: 503,
    title: 'Idempotency keys cannot be checked at the moment',
    detail: 'The request was not run unprotected. Send it again with the same key after a short delay.',
    retry: true,
  },
}

export const PROBLEM_CODES = Object.keys(CATALOGUE) as readonly ProblemCode[]

export function problemOf(
  code: ProblemCode,
  options: { readonly retryAfterMs: number; readonly problemStatuses: ProblemStatuses },
  detail?: string,
): Problem {
  const entry = CATALOGUE[code]
  return {
    code,
    type: `urn:once-per-key:problem:${code}`,
    title: entry.title,
    status: options.problemStatuses[code] ?? entry.status,
    detail: detail ?? entry.detail,
    retryAfterSeconds: entry.retry ? Math.max(1, Math.ceil(options.retryAfterMs / 1_000)) : null,
  }
}

/** The problem as a response: `application/problem+json` (RFC 9457 §3), or what `rendered` says. */
export function problemAnswer(problem: Problem, rendered?: ReturnType<RenderProblem<never>>): Answer {
  const { type, title, status, detail, code, retryAfterSeconds } = problem
  const body = rendered?.body ?? { type, title, status, detail, code }
  const headers: [string, string][] = [['Content-Type', rendered?.contentType ?? 'application/problem+json']]
  if (retryAfterSeconds !== null) headers.push(['Retry-After', String(retryAfterSeconds)])
  // Generated SDKs obey this header; without it they retry every 409.
  headers.push(['X-Should-Retry', String(retryAfterSeconds !== null)])
  return {
    status,
    statusMessage: '',
    headers,
    body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  }
}
