import { inspect, isDeepStrictEqual } from 'node:util'

/** A member that differs from the expected value. */
export interface Difference {
  /** Its path, for example `record.answer.status`; `''`: the value itself. */
  readonly member: string
  readonly due: unknown
  readonly seen: unknown
}

/** Where two values differ: the innermost members of plain objects and arrays, in the order of the expected value. */
export function differencesOf(due: unknown, seen: unknown, member = ''): Difference[] {
  if (isDeepStrictEqual(due, seen)) return []
  if (!hasMembers(due) || !hasMembers(seen) || Array.isArray(due) !== Array.isArray(seen)) {
    return [{ member, due, seen }]
  }
  const names = new Set([...Object.keys(due), ...Object.keys(seen)])
  const inMembers = [...names].flatMap((name) =>
    differencesOf(memberOf(due, name), memberOf(seen, name), pathTo(due, member, name)),
  )
  return inMembers.length > 0 ? inMembers : [{ member, due, seen }]
}

/** On one line, shortened. */
export function briefly(value: unknown): string {
  return inspect(value, {
    breakLength: Number.POSITIVE_INFINITY,
    compact: true,
    depth: 2,
    maxArrayLength: 5,
    maxStringLength: 80,
  }).replace(/\s+/g, ' ')
}

/** A placeholder that is printed as these words instead of a value. */
export function inWords(words: string): object {
  return { [inspect.custom]: () => words }
}

/** Differs from a member that is `undefined`. */
const ABSENT = inWords('nothing')

function memberOf(value: object, name: string): unknown {
  return Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : ABSENT
}

function pathTo(value: object, member: string, name: string): string {
  if (Array.isArray(value)) return `${member}[${name}]`
  return member === '' ? name : `${member}.${name}`
}

function hasMembers(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !ArrayBuffer.isView(value)
}
