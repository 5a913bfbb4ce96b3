import type { CommandName } from './events.js'

/** Whether a store answered as the interface says. What is no reply is a store failure, like a record that cannot be read. */
export function isReply(command: CommandName, reply: unknown): boolean {
  if (!isObject(reply)) return false
  switch (command) {
    case 'begin':
      if (reply.acquired === true) return isAttempt(reply.attempt) && OUTCOMES.has(reply.previousOutcome)
      return reply.acquired === false && isRecord(reply.record)
    case 'inspect':
      return reply.record === null || isRecord(reply.record)
    default:
      return reply.ok === true || (reply.ok === false && (reply.record === null || isRecord(reply.record)))
  }
}

/** Of a claim that was made: 1, 2, 3 … */
function isAttempt(attempt: unknown): boolean {
  return Number.isInteger(attempt) && (attempt as number) >= 1
}

const OUTCOMES = new Set<unknown>(['none', 'failed', 'unknown'])

function isRecord(record: unknown): boolean {
  if (!isObject(record)) return false
  switch (record.state) {
    case 'in-flight':
      return Number.isFinite(record.leaseRemainingMs) && isFingerprint(record.fingerprint)
    case 'completed':
      return typeof record.fingerprint === 'string' && isAnswer(record.answer)
    case 'failed':
      return typeof record.uncertain === 'boolean' && isFingerprint(record.fingerprint)
    default:
      return false
  }
}

function isFingerprint(fingerprint: unknown): boolean {
  return typeof fingerprint === 'string' || fingerprint === null
}

function isAnswer(answer: unknown): boolean {
  if (!isObject(answer)) return false
  const { status, statusMessage, headers, body } = answer
  return (
    Number.isInteger(status) &&
    typeof statusMessage === 'string' &&
    Array.isArray(headers) &&
    headers.every(Array.isArray) &&
    (body === null || ArrayBuffer.isView(body))
  )
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
