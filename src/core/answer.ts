import type { Answer } from './record.js'

/** The stored answer, marked as a replay. */
export function asReplay(answer: Answer): Answer {
  return { ...answer, headers: [...answer.headers, REPLAYED] }
}

const REPLAYED = ['Idempotent-Replayed', 'true'] as const

/** Says whether a header (name in lower case) is kept with an answer; `byDefault` is what the library would do. */
export type KeepHeader = (name: string, byDefault: boolean) => boolean

/** Of one connection, or of the framing that is made anew for each response: no option keeps them. */
const HOP_BY_HOP = new Set([
  // RFC 9110 §7.6.1: fields to be removed or replaced before forwarding.
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'proxy-authenticate',
  'proxy-authorization',
  // Ours: an answer that was itself forwarded from a replay says so once.
  'idempotent-replayed',
])

/** Of one moment, or of one client's session. */
const NOT_BY_DEFAULT = new Set(['date', 'set-cookie'])

/** The answer with only those headers that a replay gives back. */
export function withKeptHeaders(answer: Answer, keepHeader: KeepHeader): Answer {
  let connection = ''
  const headers = answer.headers.filter(([name, value]) => {
    const lowerCaseName = name.toLowerCase()
    if (lowerCaseName === 'connection') connection += `,${value}`
    if (lowerCaseName === 'content-length') return true // Whoever handed it over needs it.
    return !HOP_BY_HOP.has(lowerCaseName) && keepHeader(lowerCaseName, !NOT_BY_DEFAULT.has(lowerCaseName))
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
