const MOST_CHARACTERS = 255

/** A UUID v4. `crypto.randomUUID` is missing where the page is not served over TLS or from this machine. */
export function freshKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  // RFC 9562 §5.4: the version, then the variant.
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/**
 * What is wrong with a key, for its user; '' if nothing.
 *
 * @param {string} key
 */
export function mistakeInKey(key) {
  if (key === '') return 'Enter a key, for example an order number.'
  if ([...key].length > MOST_CHARACTERS) return `A key has at most ${MOST_CHARACTERS} characters.`
  if (/\p{Cc}/u.test(key)) return 'A key must not contain control characters.'
  if (/\p{Cs}/u.test(key)) return 'A character of this key is invalid. Enter it again.'
  if (key.startsWith('"')) return 'Enter the key without quotes.'
  return ''
}

/**
 * A header value as `fetch` takes it: one character for each byte of its UTF-8.
 *
 * @param {string} text
 */
export function asHeaderValue(text) {
  return Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('')
}

/**
 * Under which name the runs of a key's operation are counted: the key, where it can be a name, else its hash.
 *
 * @param {string} key
 */
export function operationNameOf(key) {
  return /^[A-Za-z0-9_-]{1,64}$/.test(key) ? key : `key-${hashOf(key)}`
}

/**
 * FNV-1a of 128 bits. `crypto.subtle` is missing where the page is not served over TLS or from this machine.
 *
 * @param {string} text
 */
function hashOf(text) {
  let hash = 0x6c62272e07bb014262b821756295c58dn
  for (const byte of new TextEncoder().encode(text)) {
    hash = BigInt.asUintN(128, (hash ^ BigInt(byte)) * 0x1000000000000000000013bn)
  }
  return hash.toString(16)
}
