/** Matches a text that begins so. */
export function startingWith(text: string): RegExp {
  return new RegExp(`^${text.replace(/[.*+?^$(){}|[\]\\]/g, '\\$&')}`)
}
