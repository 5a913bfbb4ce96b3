import { createRequestEngine, ietfDraft, type Problem, type ProblemCode } from 'once-per-key/http'
import { expect, test } from 'vitest'
import { createProblem } from '../../src/http/answer/problem.js'
import { PROBLEM_CODES } from '../../src/http/options/problem.js'
import { failingStore } from '../support/failing-store.js'

const CATALOGUE: readonly {
  readonly code: ProblemCode
  readonly status: number
  readonly ietf: number
  readonly retry: boolean
}[] = [
  { code: 'key_missing', status: 400, ietf: 400, retry: false },
  { code: 'key_invalid', status: 400, ietf: 400, retry: false },
  { code: 'body_malformed', status: 400, ietf: 400, retry: false },
  { code: 'body_too_deep', status: 400, ietf: 400, retry: false },
  { code: 'body_too_large', status: 413, ietf: 413, retry: false },
  { code: 'content_type_unsupported', status: 415, ietf: 415, retry: false },
  { code: 'in_flight', status: 409, ietf: 409, retry: true },
  { code: 'mismatched', status: 409, ietf: 422, retry: false },
  { code: 'answer_not_kept', status: 409, ietf: 409, retry: false },
  { code: 'outcome_unknown', status: 409, ietf: 409, retry: false },
  { code: 'key_expired', status: 409, ietf: 409, retry: false },
  { code: 'store_unavailable', status: 503, ietf: 503, retry: true },
  { code: 'transaction_missing', status: 500, ietf: 500, retry: false },
]

function problem(code: ProblemCode, problemStatuses = {}, retryAfterMs = 1_000): Problem {
  return createProblem(code, { retryAfterMs, problemStatuses })
}

function sent(of: Problem) {
  const engine = createRequestEngine({ store: failingStore(), scope: () => 'acme' })
  const { status, headers, body } = engine.answerFor({ action: 'reject', problem: of }, {})
  return { status, headers: Object.fromEntries(headers), body: JSON.parse(String(body)) }
}

test('no detail speaks to the developers of the service: it is for its clients', () => {
  for (const { code } of CATALOGUE) expect(problem(code).detail).not.toMatch(/`|developer|middleware|store\b|option/i)
})

test('a client without a key learns that a retry has the same one', () => {
  expect(problem('key_missing').detail).toContain('a new one for each operation, and the same one for each retry')
})

test('the catalogue has every code once', () => {
  expect(PROBLEM_CODES).toEqual(CATALOGUE.map(({ code }) => code))
  expect(new Set(PROBLEM_CODES.map((code) => problem(code).title)).size).toBe(PROBLEM_CODES.length)
})

test.each(CATALOGUE)('$code is $status, with what a client needs to know', ({ code, status, retry }) => {
  const { title, detail } = problem(code)
  expect(sent(problem(code))).toEqual({
    status,
    headers: {
      'Content-Type': 'application/problem+json',
      'X-Should-Retry': String(retry),
      ...(retry && { 'Retry-After': '1' }),
    },
    body: { type: `urn:once-per-key:problem:${code}`, title, status, detail, message: detail, code },
  })
  expect(title).not.toBe('')
  expect(detail).toMatch(/\.$/)
})

test.each(CATALOGUE)('$code is $ietf by the IETF draft', ({ code, ietf, retry }) => {
  const { status, headers, body } = sent(problem(code, ietfDraft))
  expect([status, body.status, headers['X-Should-Retry']]).toEqual([ietf, ietf, String(retry)])
})

test('the statuses of the IETF draft cannot be changed by accident', () => {
  expect(Object.isFrozen(ietfDraft)).toBe(true)
})

test('a status of the application’s own stands for one code only', () => {
  const statuses = { store_unavailable: 500 }
  expect([problem('store_unavailable', statuses).status, problem('in_flight', statuses).status]).toEqual([500, 409])
})

test.each([
  { retryAfterMs: 0, seconds: 1 },
  { retryAfterMs: 1, seconds: 1 },
  { retryAfterMs: 1_000, seconds: 1 },
  { retryAfterMs: 1_001, seconds: 2 },
  { retryAfterMs: 90_000, seconds: 90 },
])('Retry-After says $seconds s for $retryAfterMs ms', ({ retryAfterMs, seconds }) => {
  expect(problem('in_flight', {}, retryAfterMs).retryAfterSeconds).toBe(seconds)
  expect(problem('mismatched', {}, retryAfterMs).retryAfterSeconds).toBeNull()
})
