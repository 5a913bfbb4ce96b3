import { isUtf8 } from 'node:buffer'
import { isWithoutBody } from '../options/given-functions.js'
import type { ResolvedOptions } from '../options/options.js'
import { contentTypeOf, firstHeaderLine, hasMembers, headerLines, isJson, type RequestFacts } from './facts.js'

/** Whether what is decided on a request depends on its body: its fingerprint does, or the deprecated place of its key. */
export function readsBody<Req>(
  { method, rawHeaders }: Pick<RequestFacts, 'method' | 'rawHeaders'>,
  { methods, header, legacyKey, fingerprint }: ResolvedOptions<Req>,
): boolean {
  if (!methods.includes(method)) return false
  if (legacyKey !== undefined && hasMembers(contentTypeOf(rawHeaders))) return true
  if (fingerprint !== undefined && isWithoutBody(fingerprint)) return false
  return headerLines(rawHeaders, header.toLowerCase()).length > 0
}

/** What a binding that reads bodies itself tells of one. */
export type ReadBody = Pick<RequestFacts, 'body' | 'bodyWasRead' | 'bodyIsEmpty' | 'bodyFault'>

/**
 * A body's bytes as requests are compared by them, whichever binding has read them: JSON and forms by their members, anything
 * else by its bytes.
 */
export function comparableBody(bytes: Uint8Array, rawHeaders: readonly string[]): ReadBody {
  const contentType = contentTypeOf(rawHeaders)
  const canHaveMembers = hasMembers(contentType) || isJson(contentType)
  const isAbsent = canHaveMembers || contentType === '' || !isAnnounced(rawHeaders)
  if (bytes.byteLength === 0 && isAbsent) return { body: undefined, bodyWasRead: true, bodyIsEmpty: true }
  if (!canHaveMembers) return { body: bytes, bodyWasRead: true }
  if (!isUtf8(bytes)) return malformed(bytes) // All invalid bytes would be read as the same character.
  const text = new TextDecoder().decode(bytes) // Without a byte order mark, as `request.json()`.
  if (!isJson(contentType)) return formBody(text, bytes)
  try {
    // `null` is data like any other, and not an absent body.
    return { body: JSON.parse(text) ?? bytes, bodyWasRead: true }
  } catch {
    return malformed(bytes)
  }
}

function formBody(text: string, bytes: Uint8Array): ReadBody {
  if (hasTooManyFields(text)) return { body: undefined, bodyWasRead: true, bodyFault: 'too_many_fields' }
  const escaped = text.match(/(?:%[\da-f]{2})+/gi) ?? []
  return escaped.every(isEscapedText) ? { body: fieldsIn(text), bodyWasRead: true } : malformed(bytes)
}

/** Whether the escaped bytes are valid UTF-8. */
function isEscapedText(escaped: string): boolean {
  try {
    decodeURIComponent(escaped)
    return true
  } catch {
    return false
  }
}

function malformed(bytes: Uint8Array): ReadBody {
  return { body: bytes, bodyWasRead: true, bodyFault: 'malformed' }
}

/** Where a body is announced, parsers give as bytes what has none. */
function isAnnounced(rawHeaders: readonly string[]): boolean {
  return ['content-length', 'transfer-encoding'].some((name) => firstHeaderLine(rawHeaders, name) !== undefined)
}

/** As in Express, whose parser counts the same way. */
const MOST_FIELDS = 1_000

export const TOO_MANY_FIELDS_DETAIL = 'A form may have at most 1,000 fields.'

function hasTooManyFields(text: string): boolean {
  let fields = 1
  for (let at = text.indexOf('&'); at !== -1; at = text.indexOf('&', at + 1)) {
    if (++fields > MOST_FIELDS) return true
  }
  return false
}

/** A form by its fields; one that comes several times is a list. */
function fieldsIn(text: string): object {
  const fields: Record<string, string | string[]> = Object.create(null)
  for (const [name, value] of new URLSearchParams(text)) {
    const known = fields[name]
    if (known === undefined) fields[name] = value
    else if (typeof known === 'string') fields[name] = [known, value]
    else known.push(value)
  }
  return fields
}
