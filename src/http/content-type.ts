import { headerLines } from './header-lines.js'

/** As sent, parameters included; `''`: it was not. */
export function contentTypeOf(rawHeaders: readonly string[]): string {
  const [contentType = ''] = headerLines(rawHeaders, 'content-type')
  return contentType
}

export function isMultipart(contentType: string): boolean {
  return /^\s*multipart\//i.test(contentType)
}

/** JSON, or a form: what a parser makes members of. */
export function hasMembers(contentType: string): boolean {
  return /^\s*application\/(?:(?:[^;\s]*\+)?json|x-www-form-urlencoded)\s*(?:;|$)/i.test(contentType)
}

export function isJson(contentType: string): boolean {
  return /^\s*[^/;\s]+\/(?:[^;\s]*\+)?json\s*(?:;|$)/i.test(contentType)
}

/** RFC 9110 §8.3.1, "media-type", without its parameters; its length is bounded, since a client chooses it. */
const MEDIA_TYPE = /^\s*([\w!#$%&'*+.^`|~-]{1,64}\/[\w!#$%&'*+.^`|~-]{1,64})\s*(?:;|$)/

/** The bare type in lower case, to be named in a message; `null`: there is none, or none that is well-formed. */
export function mediaTypeOf(contentType: string): string | null {
  return MEDIA_TYPE.exec(contentType)?.[1]?.toLowerCase() ?? null
}
