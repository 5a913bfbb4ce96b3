import { randomUUID } from 'node:crypto'
import { describeKind } from './errors.js'

/**
 * The type itself if it is JSON throughout; otherwise a type that does not accept its values: Date, Map, bigint,
 * functions and `unknown` do not fit. Interfaces and type aliases do. A member may be `undefined`, which JSON omits; an
 * element of an array may not.
 */
export type JsonOf<Type> = Type extends Json | Nothing
  ? Type
  : Type extends bigint | symbol | ((...args: never[]) => unknown)
    ? never
    : Type extends readonly unknown[]
      ? { [Index in keyof Type]: JsonInputOf<Type[Index]> }
      : Type extends object
        ? { [Name in keyof Type]: JsonOf<Type[Name]> }
        : never

/** Like `JsonOf`, but not undefined. */
export type JsonInputOf<Type> = Type extends Nothing ? never : JsonOf<Type>

/** Any JSON value. An interface does not extend it, because it has no index signature: `JsonOf` accepts those, too. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json | undefined }

/**
 * The type of a result if it is JSON, else one that has no values. A type parameter is accepted, because it is not known
 * what it stands for: its values are checked at run time. (`any`, which TypeScript tries in its place, counts as JSON.)
 */
export type AsResult<Type> = Type & ('flaw' extends Flaw<Type, JsonOf<Type>> ? NotJson : unknown)

/** The same for an input. */
export type AsInput<Type> = Type & ('flaw' extends Flaw<Type, JsonInputOf<Type>> ? NotJson : unknown)

type Flaw<Type, Accepted> = [Type] extends [Accepted] ? never : 'flaw'

/** Its name is what a compiler shows. No interface: a compiler could not write it into an application's declarations. */
type NotJson = {
  readonly 'this is not JSON': never
}

// biome-ignore lint/suspicious/noConfusingVoidType: it is looked for, not made
type Nothing = undefined | void

/**
 * The text of a value that is already JSON: finite numbers, plain objects, no holes. Nothing is lost except members
 * that are `undefined`, which count as absent.
 *
 * @throws TypeError, which says what is not JSON.
 */
export function encodeStrictJson(value: unknown): string {
  return encodeJsonText(value, true)
}

/**
 * The text of a value with a JSON form: objects may also have a `toJSON`, like Date, or be of a class whose members are
 * their own. A value without a JSON form, such as a Map, NaN, or an object whose members are private or accessors of its
 * class, is not converted.
 *
 * @throws TypeError, which says what has no JSON form.
 */
export function encodeLooseJson(value: unknown): string {
  return encodeJsonText(value, false)
}

/** @throws SyntaxError; not the parser's own, which would quote what is stored. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new SyntaxError('it is not JSON')
  }
}

/** A number of a JSON text that a double does not hold, as a text: the same for each way to write the number. */
export class ExactDecimal {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/**
 * Parses JSON, to compare it: as `JSON.parse` does, except that each number that a double does not hold is an `ExactDecimal`. So
 * 9007199254740993 is not 9007199254740992. A double holds a number if it is written with the same value: 0.1, but not 0.1 and 20
 * digits more.
 *
 * @throws SyntaxError, as `JSON.parse` does.
 */
export function parseJsonExactly(text: string): unknown {
  const parsed: unknown = JSON.parse(text)
  if (!MAY_NOT_BE_HELD.test(text)) return parsed
  // Nobody can send a text that begins so.
  const mark = randomUUID()
  const marked = markInexactNumbers(text, mark)
  if (marked === text) return parsed
  const holder = { parsed: JSON.parse(marked) as unknown }
  replaceMarkedNumbers(holder, mark)
  return holder.parsed
}

/** A double holds each number of at most 15 digits whose exponent has at most two: all that are written in 15 characters, and more. */
const MAY_NOT_BE_HELD = /[\d.]{16}|\d[eE][+-]?\d{3}/

/** The text, valid JSON, with a text in place of each number that a double does not hold: its normal form behind the mark. */
function markInexactNumbers(text: string, mark: string): string {
  const pieces: string[] = []
  let copied = 0
  let at = 0
  while (at < text.length) {
    if (text.charCodeAt(at) === QUOTE) {
      at = endOfString(text, at)
      continue
    }
    const end = endOfNumber(text, at)
    const exact = end - at < SHORTEST ? null : findInexactForm(text.slice(at, end))
    if (exact !== null) {
      pieces.push(text.slice(copied, at), '"', mark, exact, '"')
      copied = end
    }
    at = end === at ? at + 1 : end
  }
  return copied === 0 ? text : pieces.join('') + text.slice(copied)
}

/** Of a number that a double does not hold: 1e400. */
const SHORTEST = 5

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Behind its closing quote. */
function endOfString(text: string, start: number): number {
  let at = start + 1
  for (let code = text.charCodeAt(at); code !== QUOTE; code = text.charCodeAt(at)) at += code === BACKSLASH ? 2 : 1
  return at + 1
}

/** The start itself, where no number begins. */
function endOfNumber(text: string, start: number): number {
  let at = start
  for (let code = text.charCodeAt(at); isDigit(code) || (at > start ? IN_NUMBER : MINUS).includes(code); ) {
    code = text.charCodeAt(++at)
  }
  return at
}

const MINUS = [0x2d]
/** `+`, `-`, `.`, `E`, `e` */
const IN_NUMBER = [0x2b, 0x2d, 0x2e, 0x45, 0x65]

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

/** The normal form of a number that a double does not hold; `null`: a double holds it. */
function findInexactForm(number: string): string | null {
  const written = String(Number(number))
  if (written === number) return null
  const form = toNormalForm(number)
  return toNormalForm(written) === form ? null : form
}

/**
 * The same for each way to write a number: its digits without zeros around them, and an exponent. An exponent of more than 15 digits
 * stays as it is written: two ways to write such a number are two numbers.
 */
function toNormalForm(number: string): string {
  const sign = number.startsWith('-') ? '-' : ''
  const [mantissa = '', exponent = '0'] = number.slice(sign.length).toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = whole + fraction
  let from = 0
  while (digits[from] === '0') from++
  let to = digits.length
  while (to > from && digits[to - 1] === '0') to--
  if (from === to) return '0'
  const power = removeLeadingZeros(exponent)
  if (power.length > 16) return number.toLowerCase()
  return `${sign}${digits.slice(from, to)}e${Number(power) + digits.length - to - fraction.length}`
}

function removeLeadingZeros(exponent: string): string {
  const sign = exponent.startsWith('-') ? '-' : ''
  let from = /^[+-]/.test(exponent) ? 1 : 0
  while (exponent[from] === '0' && from < exponent.length - 1) from++
  return sign + exponent.slice(from)
}

/** In place, without recursion, because a client chooses how deep it is. */
function replaceMarkedNumbers(root: object, mark: string): void {
  const open: object[] = [root]
  for (
    let holder = open.pop() as Record<string, unknown> | undefined;
    holder !== undefined;
    holder = open.pop() as never
  ) {
    for (const name of Object.keys(holder)) {
      const member = holder[name]
      if (typeof member === 'object' && member !== null) open.push(member)
      else if (typeof member === 'string' && member.startsWith(mark))
        holder[name] = new ExactDecimal(member.slice(mark.length))
    }
  }
}

function encodeJsonText(value: unknown, isStrict: boolean): string {
  const text: string | undefined = JSON.stringify(value, function (this: Holder, name, member: unknown) {
    const given = this[name]
    if (isStrict && !Object.is(given, member)) throw notJsonError(given) // It has a `toJSON`.
    if (!hasJsonForm(member, isStrict) || (member === undefined && Array.isArray(this))) throw notJsonError(given)
    return member
  })
  return text ?? ''
}

type Holder = Readonly<Record<string, unknown>>

function hasJsonForm(value: unknown, isStrict: boolean): boolean {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value)
    case 'bigint':
    case 'symbol':
    case 'function':
      return false
    case 'object':
      return value === null || isPlain(value) || (!isStrict && hasOnlyOwnMembers(value))
    default:
      return true
  }
}

/**
 * Whether an object's own members are all that it has: it is an array or an object of no other class, in this realm or another
 * one, for example a test runner's. An object of another class may have members that nobody else can see.
 */
export function isPlain(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value)
  // Of each realm: the prototype of arrays is an array, and that of a class that extends it is not.
  if (Array.isArray(value)) return Array.isArray(prototype)
  for (let each = prototype; each !== null; each = Object.getPrototypeOf(each)) {
    if (each === Object.prototype) return true
    // Parsers of forms have empty prototypes of their own.
    if (Reflect.ownKeys(each).length > 0 && !isRootOfRealm(each)) return false
  }
  return true
}

/** Whether it is the `Object.prototype` of some realm. */
function isRootOfRealm(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'hasOwnProperty')
}

/** Whether an object of a class has members of its own, and no others: JSON would leave out those of its class. */
function hasOnlyOwnMembers(value: object): boolean {
  if (Array.isArray(value)) return true
  if (Object.prototype.toString.call(value) !== '[object Object]' || Object.keys(value).length === 0) return false
  let each: object | null = Object.getPrototypeOf(value)
  for (; each !== null && !isRootOfRealm(each); each = Object.getPrototypeOf(each)) {
    const members = Object.values(Object.getOwnPropertyDescriptors(each))
    if (members.some(({ get }) => get !== undefined)) return false
  }
  return true
}

function notJsonError(seen: unknown): TypeError {
  const what = typeof seen === 'number' ? String(seen) : describeKind(seen)
  return new TypeError(`it is, or contains, ${what}, which is not JSON`)
}
