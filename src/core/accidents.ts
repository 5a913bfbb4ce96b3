/** What a missing value turns into when somebody coerces it: everybody's key or scope by accident. */
const ACCIDENTS = new Set(['undefined', 'null', 'NaN', '[object Object]'])

export function isAccident(text: string): boolean {
  return ACCIDENTS.has(text)
}
