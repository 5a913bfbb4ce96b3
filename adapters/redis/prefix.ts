/**
 * A storage key has two parts, `scope:key`, or three, `namespace:scope:key`, each made by `encodeURIComponent`. So one
 * prefix can reach the keys of a longer one: `once:` with the namespace `billing` writes `once:billing:…`, as does the
 * prefix `once:billing:`; and `once` with a scope `-per-key` writes what `once-per-key:` may write. No two allowed
 * prefixes can collide: each ends in a character that no part contains, and a colon may only follow a single word or
 * come before such a character.
 */
export function aPrefix(value: unknown): string | null {
  if (typeof value !== 'string') return 'a string'
  if (value.isWellFormed() && (A_WORD_AND_A_COLON.test(value) || ENDS_OUTSIDE_OF_PARTS.test(value))) return null
  return (
    "a word and a colon, such as 'payments:', or a text that ends with another sign, such as 'shop:payments/': any other " +
    'prefixes and namespaces make of their keys can begin with any other; where 0.1.0 has written records under it, add ' +
    '`prefixMayMeetOthers: true`'
  )
}

const A_WORD_AND_A_COLON = /^[\w\-.!~*'()%]+:$/
const ENDS_OUTSIDE_OF_PARTS = /[^\w\-.!~*'()%:]$/
