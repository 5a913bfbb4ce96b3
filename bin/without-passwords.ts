/**
 * At its beginning, with or without an option's name: within a text, such as an answer's, a URL is no place of records. A
 * scheme of one letter is a drive of Windows.
 */
const URL_LIKE = /^\W*(?:\w[\w-]*=\W*)?[a-z][a-z\d+.-]+:\//i

export function isUrlLike(text: string): boolean {
  return URL_LIKE.test(text)
}

/**
 * A message without what stands before the host of a URL, and without the passwords of `given`, of which drivers quote
 * parts: where a `/` or `@` of a password is not encoded, the rest of it is taken for a host. In time that grows with the texts'
 * length and no faster: a server chooses the words of its errors.
 */
export function redactPasswords(message: string, given: readonly string[]): string {
  const words = new Set(
    given
      .filter(isUrlLike)
      .flatMap((url) => parsePassword(url).match(WORD) ?? [])
      .map(normalizeCase),
  )
  return message.replace(/\S+/g, redactUserInfo).replace(WORD, (word) => (words.has(normalizeCase(word)) ? '…' : word))
}

const WORD = /[\p{L}\p{N}_]+/gu

/** Drivers write a host in small letters. */
function normalizeCase(word: string): string {
  return word.toUpperCase().toLowerCase()
}

/** Up to the last `@`, since a password may have another one. */
function redactUserInfo(text: string): string {
  const end = text.lastIndexOf('@')
  return end < 0 ? text : text.slice(0, end).replace(/(\w:\/+).*/, '$1…') + text.slice(end)
}

/** Without an `@`, all that is no port, since the shell may have cut the URL. */
function parsePassword(url: string): string {
  const [, behind = ''] = /:\/[^:[]*:(.*)/s.exec(url) ?? []
  const end = behind.lastIndexOf('@')
  if (end >= 0) return behind.slice(0, end)
  return /^\d+(?:[/?#]|$)/.test(behind) ? '' : behind
}
