import { expect } from 'vitest'
import type { RawReply } from '../support/raw-client.js'

/** What a refusal tells, once its shape is right. */
export function problemIn(reply: RawReply) {
  expect(reply.header('content-type')).toBe('application/problem+json')
  const { type, title, status, detail, message, code, ...others } = reply.json() as Record<string, unknown>
  expect(Object.keys(others).filter((name) => name !== 'errors')).toEqual([])
  expect(type).toBe(`urn:once-per-key:problem:${code}`)
  expect(status).toBe(reply.status)
  expect(message).toBe(detail)
  for (const text of [title, detail]) {
    expect(text).toEqual(expect.any(String))
    expect(text).not.toMatch(/idempotency|request with/i)
  }
  return {
    status: reply.status,
    code,
    shouldRetry: reply.header('x-should-retry'),
    retryAfter: reply.header('retry-after'),
  }
}
