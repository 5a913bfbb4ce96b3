/**
 * Texts that missing values become when they are converted to strings: many clients would share them as a key or scope.
 */
const ACCIDENTS = new Set(['undefined', 'null', 'NaN', '[object Object]'])

export function isAccident(text: string): boolean {
  return ACCIDENTS.has(text)
}
