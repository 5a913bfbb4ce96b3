import { kindOf } from './errors.js'

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

/** Its name is what a compiler shows. */
interface NotJson {
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
export function strictJson(value: unknown): string {
  return jsonText(value, true)
}

/**
 * The text of a value with a JSON form: objects may also have a `toJSON`, like Date, or be of a class whose members are
 * their own. A value without a JSON form, such as a Map, NaN, or an object whose members are private or accessors of its
 * class, is not converted.
 *
 * @throws TypeError, which says what has no JSON form.
 */
export function looseJson(value: unknown): string {
  return jsonText(value, false)
}

/** @throws SyntaxError; not the parser's own, which would quote what is stored. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new SyntaxError('it is not JSON')
  }
}

function jsonText(value: unknown, isStrict: boolean): string {
  const text: string | undefined = JSON.stringify(value, function (this: Holder, name, member: unknown) {
    const given = this[name]
    if (isStrict && !Object.is(given, member)) throw notJson(given) // It has a `toJSON`.
    if (!hasJsonForm(member, isStrict) || (member === undefined && Array.isArray(this))) throw notJson(given)
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
      return value === null || isPlain(value) || (!isStrict && showsItsMembers(value))
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
function showsItsMembers(value: object): boolean {
  if (Array.isArray(value)) return true
  if (Object.prototype.toString.call(value) !== '[object Object]' || Object.keys(value).length === 0) return false
  let each: object | null = Object.getPrototypeOf(value)
  for (; each !== null && !isRootOfRealm(each); each = Object.getPrototypeOf(each)) {
    const members = Object.values(Object.getOwnPropertyDescriptors(each))
    if (members.some(({ get }) => get !== undefined)) return false
  }
  return true
}

function notJson(seen: unknown): TypeError {
  const what = typeof seen === 'number' ? String(seen) : kindOf(seen)
  return new TypeError(`it is, or contains, ${what}, which is not JSON`)
}
