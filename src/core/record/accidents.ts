/**
 * Texts that missing values become when they are converted to strings: many clients would share them as a key or scope.
 */
const ACCIDENTS = new Set(['undefined', 'null', 'NaN', '[object Object]'])
const LONGEST = Math.max(...[...ACCIDENTS].map(({ length }) => length))

export function isAccident(text: string): boolean {
  return text.length <= LONGEST && ACCIDENTS.has(text)
}
