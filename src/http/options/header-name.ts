import type { Rule } from '../../core/options/validation.js'

/** RFC 9110 §5.1, "field-name". */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

export function isHeaderName(name: string): boolean {
  return HEADER_NAME.test(name)
}

export const aHeaderName: Rule = (value) =>
  typeof value === 'string' && isHeaderName(value) ? null : "a header's name"

interface HeaderName {
  readonly lowerCase: string
  readonly isName: boolean
  /** Whether it must never be kept, whatever the options say. */
  readonly isHopByHop: boolean
  /** Whether it describes one connection or the framing of one message: the server sets it. */
  readonly isOfConnection: boolean
  readonly isKeptByDefault: boolean
}

/** A cache, since the same few names come with each answer. Bounded, because an application may generate names. */
const KNOWN_NAMES = new Map<string, HeaderName>()
const MOST_KNOWN_NAMES = 1_000
const LONGEST_KNOWN_NAME = 64

export function headerNameOf(name: string): HeaderName {
  const known = KNOWN_NAMES.get(name)
  if (known !== undefined) return known
  const lowerCase = name.toLowerCase()
  const isHopByHop = HOP_BY_HOP.has(lowerCase)
  const headerName = {
    lowerCase,
    isName: isHeaderName(name),
    isHopByHop,
    isOfConnection: OF_CONNECTION.has(lowerCase),
    isKeptByDefault: !NOT_BY_DEFAULT.has(lowerCase),
  }
  if (name.length <= LONGEST_KNOWN_NAME && KNOWN_NAMES.size < MOST_KNOWN_NAMES) KNOWN_NAMES.set(name, headerName)
  return headerName
}

/** RFC 9110 §7.6.1: fields to be removed or replaced before forwarding. */
const OF_CONNECTION = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Headers of one connection, or of the framing, which is made anew for each response: no option can keep them. */
const HOP_BY_HOP = new Set([
  ...OF_CONNECTION,
  'proxy-authenticate',
  'proxy-authorization',
  // Our own: an answer that was itself a forwarded replay must not contain it twice.
  'idempotent-replayed',
])

/**
 * The headers, in lower case, without which nobody can read the bytes of a body. They belong to the answer, whoever has set them, and
 * a replay has only those that the answer has.
 */
export const bodyHeaders: ReadonlySet<string> = new Set(['content-type', 'content-encoding'])

/** Headers of one moment, or of one client's session. */
const NOT_BY_DEFAULT = new Set(['date', 'set-cookie'])
