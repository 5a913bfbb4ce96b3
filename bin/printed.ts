/** For scripts: one JSON value. What would steer a terminal is escaped here too, beyond what JSON requires. */
export function printJson(value: unknown): void {
  const json = JSON.stringify(value, null, 2)
  console.log(json.replace(/[\u007f-\u009f\p{Cf}\u2028\u2029]/gu, escapeForJson))
}

/** Each half of a surrogate pair by itself. */
function escapeForJson(sign: string): string {
  return sign.replace(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** For people: columns as wide as they need be. Keys and scopes are a client's: what would steer a terminal is escaped. */
export function printTable(titles: readonly string[], rows: readonly (readonly string[])[]): void {
  const shown = [titles, ...rows.map((row) => row.map(stripControlCharacters))]
  const widths = titles.map((_, column) => shown.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), 0))
  for (const row of shown)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
}

/** Names, and what is said of each; nothing where it is `undefined`. */
export type Facts = Readonly<Record<string, string | number | undefined>>

export function printFacts(facts: Facts): void {
  const told = Object.entries(facts).filter(([, fact]) => fact !== undefined)
  const width = Math.max(...told.map(([name]) => name.length))
  for (const [name, fact] of told) console.log(`${name.padEnd(width)}  ${stripControlCharacters(String(fact))}`)
}

/** Without control characters, also those that turn the direction of the text. */
export function stripControlCharacters(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (sign) => `\\u{${sign.codePointAt(0)?.toString(16)}}`)
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** A duration, in its largest unit. */
export function formatDuration(ms: number): string {
  const [unit, length] = UNITS.find(([, length]) => Math.abs(ms) >= length) ?? ['ms', 1]
  return `${Math.round(ms / length)} ${unit}`
}

export function formatBytes(bytes: number): string {
  const [unit, size] = bytes >= 2 ** 30 ? ['GiB', 2 ** 30] : bytes >= 2 ** 20 ? ['MiB', 2 ** 20] : ['KiB', 2 ** 10]
  return `${(bytes / (size as number)).toFixed(1)} ${unit}`
}
