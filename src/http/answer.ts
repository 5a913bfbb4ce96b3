import type { Answer } from '../core/record.js'
import { headerNameOf } from './header-name.js'

/** The stored answer, marked as a replay. */
export function asReplay(answer: Answer): Answer {
  return { ...answer, headers: [...answer.headers, REPLAYED] }
}

const REPLAYED = ['Idempotent-Replayed', 'true'] as const

/** Says whether a header (name in lower case) is kept with an answer; `byDefault` is what the library would do. */
export type KeepHeader = (name: string, byDefault: boolean) => boolean

/** The answer as it is stored: with only those headers that a replay gives back, and without what could not be sent. */
export function storedAnswer(answer: Answer, keepHeader: KeepHeader): Answer {
  const stored = withKeptHeaders(answer, keepHeader)
  return isSendable(stored) ? stored : { ...stored, body: null }
}

/** The answer with only those headers that a replay gives back. */
function withKeptHeaders(answer: Answer, keepHeader: KeepHeader): Answer {
  let connection = ''
  const headers = answer.headers.filter(([name, value]) => {
    const { lowerCase, isHopByHop, isKeptByDefault } = headerNameOf(name)
    if (lowerCase === 'connection') connection += `,${value}`
    if (lowerCase === 'content-length') return isLengthOf(answer, value) // Whoever handed it over needs it.
    return !isHopByHop && keepHeader(lowerCase, isKeptByDefault)
  })
  if (connection === '') return { ...answer, headers }
  // RFC 9110 §7.6.1: it names further fields of this connection.
  const named = new Set(
    connection
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  )
  return { ...answer, headers: headers.filter(([name]) => !named.has(name.toLowerCase())) }
}

/**
 * Whether an answer can be sent as it stands. One that cannot was never stored: its record is damaged, or somebody else's
 * work, such as a header that would split the response in two.
 */
export function isSendable(answer: Answer): boolean {
  const { status, statusMessage, headers } = answer
  return (
    status >= 200 &&
    status <= 599 &&
    (statusMessage === '' || REASON_PHRASE.test(statusMessage)) &&
    headers.every(([name, value]) => {
      const { lowerCase, isName, isHopByHop } = headerNameOf(name)
      if (!isName || isHopByHop || CONTROL_CHARACTER.test(value)) return false
      return lowerCase !== 'content-length' || isLengthOf(answer, value)
    })
  )
}

/** What was expected of an answer that cannot be sent, in words; `null`: it can. */
export function sendingFault(answer: Answer): string | null {
  return isSendable(answer) ? null : SENDABLE
}

const SENDABLE =
  'an answer that can be sent (a status from 200 to 599, no header of one connection, a Content-Length that is the body’s)'

/** RFC 9112 §4: "reason-phrase = 1*( HTAB / SP / VCHAR / obs-text )". */
const REASON_PHRASE = /^[\t\x20-\x7e\x80-\xff]*$/
/** RFC 9110 §5.5: "CR, LF, and NUL characters are invalid and dangerous". */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what is looked for.
const CONTROL_CHARACTER = /[\0-\x08\x0a-\x1f\x7f]/

/** RFC 9110 §8.6: after HEAD, with 204 and with 304 a length is that of a body which is not sent. */
function isLengthOf({ status, body }: Answer, length: string): boolean {
  if (body === null || body.byteLength === 0 || status === 204 || status === 304) return /^\d+$/.test(length)
  return length === String(body.byteLength)
}

/** Lines of one name together, under the name as it was first written: what `setHeader` takes, which knows one value a name. */
export function headersByName(headers: Answer['headers']): Iterable<readonly [name: string, value: string | string[]]> {
  const byName = new Map<string, [name: string, value: string | string[]]>()
  for (const [name, value] of headers) {
    const lowerCaseName = name.toLowerCase()
    const lines = byName.get(lowerCaseName)
    if (lines === undefined) byName.set(lowerCaseName, [name, value])
    else lines[1] = [lines[1], value].flat()
  }
  return byName.values()
}

/** Success, unless `isSuccess` says otherwise: 200 to 399 except 307 and 308, which ask for the same request again. */
export function isSuccessStatus(status: number): boolean {
  return status >= 200 && status <= 399 && status !== 307 && status !== 308
}

/** An event stream (WHATWG HTML §9.2) has no end to wait for. */
export function isEventStream(contentType: unknown): boolean {
  return typeof contentType === 'string' && /^\s*text\/event-stream\s*(?:;|$)/i.test(contentType)
}
