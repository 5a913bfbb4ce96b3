import { withCauses } from '../sql/clients.js'
import { sqlStateOf } from './sql-state.js'
import type { Statement } from './statement.js'

/**
 * Removes the values of a store's statement from a client's error, in place: some clients put them into the message, or
 * into properties, and they contain a key and an answer. Classes, codes and causes stay. The database's `detail` never does: it
 * shows the beginnings of long values, which no comparison with the whole value finds.
 */
export function withoutValues(error: unknown, { values }: Pick<Statement, 'values'>): void {
  // A key and a token: errors that contain both contain the others too. A short key alone may be part of any word.
  const names = values.slice(0, 2).filter((value) => typeof value === 'string' && !/^\d*$/.test(value)) as string[]
  const hasThem = (text: string | readonly unknown[]) => names.length > 0 && names.every((name) => text.includes(name))
  for (const each of withCauses(error)) {
    if ('detail' in each) Reflect.set(each, 'detail', undefined)
    const { message } = each
    const told = `A statement of the store failed (SQLSTATE ${sqlStateOf(error) ?? 'unknown'}). Its values are left out.`
    for (const name of Object.getOwnPropertyNames(each)) {
      const value = each[name]
      if (Array.isArray(value) && hasThem(value)) Reflect.set(each, name, [])
      if (typeof value !== 'string' || !hasThem(value)) continue
      // The stack begins with the message.
      const shown = name === 'stack' ? value.replace(String(message), () => told) : told
      Reflect.set(each, name, hasThem(shown) ? told : shown)
    }
  }
}
