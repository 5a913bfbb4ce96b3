import { sqlStateOf, withCauses } from './sql-state.js'
import type { Statement } from './statement.js'

/**
 * Takes the values of a statement of the store out of a client's error about it, in place: some clients put them into its message,
 * or beside it, and they are a key and an answer. What an application decides by stays: the classes, the codes and the causes.
 */
export function withoutValues(error: unknown, { values }: Pick<Statement, 'values'>): void {
  // A key or a token: where it is, the others are.
  const [first] = values
  if (typeof first !== 'string' || /^\d*$/.test(first)) return
  for (const each of withCauses(error)) {
    const { message } = each
    const told = `A statement of the store failed (SQLSTATE ${sqlStateOf(error) ?? 'unknown'}). Its values are left out.`
    for (const name of Object.getOwnPropertyNames(each)) {
      const value = each[name]
      if (Array.isArray(value) && value.includes(first)) Reflect.set(each, name, [])
      if (typeof value !== 'string' || !value.includes(first)) continue
      // Behind its words come the lines of the stack.
      const shown = name === 'stack' ? value.replace(String(message), () => told) : told
      Reflect.set(each, name, shown.includes(first) ? told : shown)
    }
  }
}
