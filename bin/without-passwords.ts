/**
 * At its beginning, with or without an option's name: within a text, such as an answer's, a URL is no place of records. A
 * scheme of one letter is a drive of Windows.
 */
const URL_LIKE = /^\W*(?:\w[\w-]*=\W*)?[a-z][a-z\d+.-]+:\//i

export function looksLikeUrl(text: string): boolean {
  return URL_LIKE.test(text)
}

/**
 * A message without what stands before the host of a URL, and without the passwords of `given`, of which drivers quote
 * parts: where a `/` or `@` of a password is not encoded, the rest of it is taken for a host.
 */
export function withoutPasswords(message: string, given: readonly string[]): string {
  const words = given.filter(looksLikeUrl).flatMap((url) => passwordIn(url).match(/[\p{L}\p{N}_]+/gu) ?? [])
  const shown = message.replace(/(\w:\/+)\S*@/g, '$1…@')
  return words.reduce(
    (text, word) => text.replace(new RegExp(`(?<![\\p{L}\\p{N}_])${word}(?![\\p{L}\\p{N}_])`, 'giu'), '…'),
    shown,
  )
}

/** Without an `@`, all that is no port, since the shell may have cut the URL. */
function passwordIn(url: string): string {
  const [, behind = ''] = /:\/+[^:[]*:(.*)/s.exec(url) ?? []
  const end = behind.lastIndexOf('@')
  if (end >= 0) return behind.slice(0, end)
  return /^\d+(?:[/?#]|$)/.test(behind) ? '' : behind
}
