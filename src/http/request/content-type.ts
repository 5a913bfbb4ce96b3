import { firstHeaderLine } from './header-lines.js'

/** As sent, with parameters; `''` if it was not sent. */
export function contentTypeOf(rawHeaders: readonly string[]): string {
  return firstHeaderLine(rawHeaders, 'content-type') ?? ''
}

export function isMultipart(contentType: string): boolean {
  return /^\s*multipart\//i.test(contentType)
}

/** Whether it is JSON or a form, which a parser turns into members. */
export function hasMembers(contentType: string): boolean {
  return /^\s*application\/(?:(?:[^;\s]*\+)?json|x-www-form-urlencoded)\s*(?:;|$)/i.test(contentType)
}

export function isJson(contentType: string): boolean {
  return /^\s*[^/;\s]+\/(?:[^;\s]*\+)?json\s*(?:;|$)/i.test(contentType)
}

/** RFC 9110 §8.3.1, "media-type", without its parameters. The length is limited because clients choose it. */
const MEDIA_TYPE = /^\s*([\w!#$%&'*+.^`|~-]{1,64}\/[\w!#$%&'*+.^`|~-]{1,64})\s*(?:;|$)/

/** The type alone in lower case, for messages; `null` if there is none, or if it is malformed. */
export function mediaTypeOf(contentType: string): string | null {
  return MEDIA_TYPE.exec(contentType)?.[1]?.toLowerCase() ?? null
}
