import { sqlStateOf, withCauses } from './sql-state.js'
import type { Statement } from './statement.js'

/**
 * Removes the values of a store's statement from a client's error, in place: some clients put them into the message, or
 * into properties, and they contain a key and an answer. Classes, codes and causes stay.
 */
export function withoutValues(error: unknown, { values }: Pick<Statement, 'values'>): void {
  // A key or a token: errors that contain it contain the others too.
  const [first] = values
  if (typeof first !== 'string' || /^\d*$/.test(first)) return
  for (const each of withCauses(error)) {
    const { message } = each
    const told = `A statement of the store failed (SQLSTATE ${sqlStateOf(error) ?? 'unknown'}). Its values are left out.`
    for (const name of Object.getOwnPropertyNames(each)) {
      const value = each[name]
      if (Array.isArray(value) && value.includes(first)) Reflect.set(each, name, [])
      if (typeof value !== 'string' || !value.includes(first)) continue
      // The stack begins with the message.
      const shown = name === 'stack' ? value.replace(String(message), () => told) : told
      Reflect.set(each, name, shown.includes(first) ? told : shown)
    }
  }
}
