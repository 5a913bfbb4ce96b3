/**
 * A storage key is two parts, `scope:key`, or three, `namespace:scope:key`, of what `encodeURIComponent` leaves. So a prefix
 * can meet the records of a longer one that goes on as such a key begins: `once:` in the namespace `billing` writes
 * `once:billing:…`, as does `once:billing:`; and `once` for a scope `-per-key` what `once-per-key:` may write. No two of
 * those that are allowed can: each ends where no part can go on, and a colon stands only at the end of a word, or before a
 * character that is in no part.
 */
export function aPrefix(value: unknown): string | null {
  if (typeof value !== 'string') return 'a string'
  if (value.isWellFormed() && (A_WORD_AND_A_COLON.test(value) || ENDS_OUTSIDE_OF_PARTS.test(value))) return null
  return (
    "a word and a colon, such as 'payments:', or a text that ends with another sign, such as 'shop:payments/': what other " +
    'prefixes and namespaces make of their keys can begin with any other; where 0.1.0 has written records under it, add ' +
    '`prefixMayMeetOthers: true`'
  )
}

const A_WORD_AND_A_COLON = /^[\w\-.!~*'()%]+:$/
const ENDS_OUTSIDE_OF_PARTS = /[^\w\-.!~*'()%:]$/
