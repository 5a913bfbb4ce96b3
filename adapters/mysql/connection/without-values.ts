import { type Fields, withCauses } from '../../sql/clients.js'
import { errorNumberOf } from '../errors.js'
import type { Statement } from '../statement.js'

/** Where clients put a statement and its values. */
const HOLDS_VALUES = ['sql', 'query', 'parameters', 'params', 'bindings', 'values'] as const

/**
 * Removes the store's statement from a client's error, in place: clients put its text, with a key and an answer in it, into properties,
 * and some into the message. Classes, codes and causes stay.
 */
export function withoutValues(error: unknown, { text }: Pick<Statement, 'text'>): void {
  const beginning = text.slice(0, BEGINNING)
  for (const each of withCauses(error)) {
    for (const name of HOLDS_VALUES) if (name in each) Reflect.set(each, name, undefined)
    for (const name of ['message', 'sqlMessage', 'stack']) hide(each, name, beginning)
  }
}

/** Enough to tell that a text shows the statement. */
const BEGINNING = 40

function hide(each: Fields, name: string, beginning: string): void {
  const value = each[name]
  if (typeof value !== 'string' || !value.includes(beginning)) return
  Reflect.set(each, name, `A statement of the store failed (${errorNumberOf(each) ?? 'unknown'}). It is left out.`)
}
