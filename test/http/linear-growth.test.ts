import { computeRequestFingerprint, parseComparableBody } from 'once-per-key/http'
import { expect, onTestFinished, test } from 'vitest'

const KIB = 1_024
const SIZES = [64 * KIB, 256 * KIB, 1_024 * KIB]

/**
 * How many elements the built-in functions go through that copy or move an array, while `work` runs: a copy for each element of a growing
 * list is what makes a parser quadratic. Counted, since times say little on a busy machine.
 */
function elementsMoved(work: () => unknown): number {
  let moved = 0
  const prototype = Array.prototype as unknown as Record<string | symbol, (...args: unknown[]) => unknown>
  const names = [
    'flat',
    'concat',
    'slice',
    'splice',
    'shift',
    'unshift',
    'map',
    'filter',
    'indexOf',
    'includes',
    Symbol.iterator,
  ]
  const own = names.map((name) => [name, prototype[name]] as const)
  const restore = () => {
    for (const [name, method] of own) prototype[name] = method as () => unknown
  }
  onTestFinished(restore)
  for (const [name, method] of own) {
    prototype[name] = function (this: unknown[], ...args: unknown[]) {
      moved += this.length + 1
      return method?.apply(this, args)
    }
  }
  try {
    work()
  } finally {
    restore()
  }
  return moved
}

const FORM = 'application/x-www-form-urlencoded'
const JSON_TYPE = 'application/json'

test.each<{ what: string; type: string; made: (byteLength: number) => string }>([
  { what: 'a form of one field, again and again', type: FORM, made: (n) => 'a&'.repeat(n / 2) },
  {
    what: 'a form of 1,000 long fields of one name',
    type: FORM,
    made: (n) => `a=${'x'.repeat(n / 1_000)}&`.repeat(999),
  },
  {
    what: 'a form of other fields',
    type: FORM,
    made: (n) => Array.from({ length: n / 8 }, (_, i) => `f${i}=1`).join('&'),
  },
  { what: 'escapes', type: FORM, made: (n) => `a=${'%41'.repeat(n / 3)}` },
  { what: 'a flat list', type: JSON_TYPE, made: (n) => `[${'1,'.repeat(n / 2)}1]` },
  { what: 'lists in lists', type: JSON_TYPE, made: (n) => `[${'[[[[]]]],'.repeat(n / 9)}1]` },
  {
    what: 'members',
    type: JSON_TYPE,
    made: (n) => `{${Array.from({ length: n / 10 }, (_, i) => `"m${i}":1`).join()}}`,
  },
  { what: 'one member, again and again', type: JSON_TYPE, made: (n) => `{${'"a":1,'.repeat(n / 6)}"a":1}` },
  { what: 'a long text', type: JSON_TYPE, made: (n) => `"${'\\u0001'.repeat(n / 6)}"` },
  { what: 'bytes', type: 'text/plain', made: (n) => 'x'.repeat(n) },
])('reading and comparing grows with the body, not faster: $what', ({ type, made }) => {
  const counts = SIZES.map((size) => {
    const bytes = new TextEncoder().encode(made(size))
    const headers = ['Content-Type', type]
    return (
      elementsMoved(() => computeRequestFingerprint('POST', '/payouts', parseComparableBody(bytes, headers).body)) /
      size
    )
  })
  for (const each of counts) expect(each).toBeLessThan(8)
})
