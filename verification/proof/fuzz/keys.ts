import { Buffer } from 'node:buffer'
import type { Random } from './random.js'

/** What stands in the key's header: its lines, in one of the ways to write the same key. */
export interface Key {
  /** Each way is a list of lines; none: the header is absent. */
  readonly spellings: readonly (readonly Buffer[])[]
}

export const NO_KEY: Key = { spellings: [[]] }

/** A key that nobody else has, by its number. */
export function validKey(random: Random, number: number): Key {
  const make = random.pick(VALID)
  return { spellings: make(`${number}`).map((text) => [bytesOf(text)]) }
}

/** The same characters for another scope may give the same text where the two are joined without care. */
export function collidingKey(number: number): { readonly ofAcme: Key; readonly ofAcmeEu: Key } {
  return { ofAcme: inOneWay(`eu:k${number}`), ofAcmeEu: inOneWay(`k${number}`) }
}

export function invalidKey(random: Random, number: number): Key {
  const lines = random.pick(INVALID)(`${number}`)
  return { spellings: [lines.map(bytesOf)] }
}

/** A key for the body's field: any text, as JSON. */
export function fieldOf(key: Key): string {
  const [line] = key.spellings[0] ?? []
  return JSON.stringify(line?.toString('utf8') ?? null)
}

function inOneWay(text: string): Key {
  return { spellings: [[bytesOf(text)]] }
}

const bare = (text: string) => [text]
const inBothForms = (text: string) => [text, `"${text}"`]
const inQuotes = (text: string) => [`"${text.replace(/["\\]/g, '\\$&')}"`]
/** A byte beyond ASCII, as Latin-1; `bytesOf` leaves it alone. */
const LATIN_1 = Symbol.for('latin1')
type Text = string | { readonly [LATIN_1]: string }

const VALID: readonly ((number: string) => readonly Text[])[] = [
  (n) => inBothForms(`k${n}`),
  (n) => inBothForms(`k ${n}, and more; a=b`),
  (n) => inBothForms(`k%3A%2F${n}`),
  (n) => inBothForms(`eu:k-${n}`),
  (n) => inBothForms(`__proto__${n}`),
  (n) => inBothForms(`{k${n}}`),
  (n) => inBothForms(`${n}${'k'.repeat(255 - n.length)}`),
  (n) => inQuotes(`say "${n}" \\ again`),
  (n) => inQuotes(` ${n} `),
  (n) => bare(`"${n}`),
  (n) => bare(`"${n}" or "x"`),
  (n) => bare(`"${n}\\"`),
  (n) => bare(`ключ-${n}-☃`),
  (n) => bare(`${'😀'.repeat(255 - n.length)}${n}`),
  (n) => [`clé-${n}`, { [LATIN_1]: `cl\xe9-${n}` }],
  (n) => [{ [LATIN_1]: `\xff\xfe-${n}` }, `ÿþ-${n}`],
]

const INVALID: readonly ((number: string) => readonly Text[])[] = [
  () => [''],
  () => ['""'],
  () => ['undefined'],
  () => ['"[object Object]"'],
  (n) => [`${n}${'k'.repeat(256 - n.length)}`],
  (n) => [`"${n}${'k'.repeat(256 - n.length)}"`],
  (n) => [`${n}${'é'.repeat(256 - n.length)}`],
  (n) => [`k${n}`, `k${n}`],
  (n) => [`k${n}`, `other${n}`],
  (n) => ['', `k${n}`],
  (n) => [`k\t${n}`],
  (n) => [`k\u0085${n}`],
  (n) => [{ [LATIN_1]: `k\x85${n}` }],
]

function bytesOf(text: Text): Buffer {
  return typeof text === 'string' ? Buffer.from(text) : Buffer.from(text[LATIN_1], 'latin1')
}
