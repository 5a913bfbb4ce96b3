import type { Rule } from '../core/validation.js'

/** RFC 9110 §5.1, "field-name". */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

export function isHeaderName(name: string): boolean {
  return HEADER_NAME.test(name)
}

/** A rule for options: a header's name, in any case. */
export const aHeaderName: Rule = (value) =>
  typeof value === 'string' && isHeaderName(value) ? null : "a header's name"

/** What an answer's headers are judged by, for one name. */
export interface HeaderName {
  readonly lowerCase: string
  /** It can be sent. */
  readonly isName: boolean
  /** No option keeps it. */
  readonly isHopByHop: boolean
  readonly isKeptByDefault: boolean
}

/** The same few names come with each answer. Bounded, since an application may make up more: those are judged each time. */
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
    isKeptByDefault: !NOT_BY_DEFAULT.has(lowerCase),
  }
  if (name.length <= LONGEST_KNOWN_NAME && KNOWN_NAMES.size < MOST_KNOWN_NAMES) KNOWN_NAMES.set(name, headerName)
  return headerName
}

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
