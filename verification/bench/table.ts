import type { Spread } from './statistics.js'

export interface Table {
  readonly title: string
  /** What the figures are, and how they came about. */
  readonly notes: readonly string[]
  readonly columns: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

export function asText({ title, notes, columns, rows }: Table): string {
  const lines = [columns, ...rows]
  const widths = columns.map((_, i) => Math.max(...lines.map((line) => (line[i] ?? '').length)))
  // The first column names things; figures align at their end.
  const aligned = lines.map((line) =>
    line
      .map((cell, i) => (i === 0 || !isFigure(rows, i) ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
  return [title, ...aligned.map((line) => `  ${line}`), ...notes.map((note) => `  · ${note}`), ''].join('\n')
}

export function asMarkdown({ title, notes, columns, rows }: Table): string {
  const table = rowsAsMarkdown({ columns, rows })
  return [`### ${title}`, '', table, '', ...notes.map((note) => `- ${note}`), ''].join('\n')
}

export function rowsAsMarkdown({ columns, rows }: Pick<Table, 'columns' | 'rows'>): string {
  const row = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  const rule = columns.map((_, i) => (i === 0 || !isFigure(rows, i) ? '---' : '---:'))
  return [row(columns), row(rule), ...rows.map(row)].join('\n')
}

/** `1.08 (1.05–1.12)`: the median of the rounds, and from where to where they went. */
export function spreadCell({ median, least, most }: Spread, digits: number): string {
  if (Number.isNaN(median)) return '–'
  const [middle, low, high] = [median, least, most].map((value) => value.toFixed(digits))
  return low === high ? `${middle}` : `${middle} (${low}–${high})`
}

export function countCell(value: number): string {
  return Number.isNaN(value) ? '–' : Math.round(value).toLocaleString('en-GB')
}

/** `200 B`, `16 KiB`, `1 MiB`. */
export function bytesCell(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`
  return bytes < 2 ** 20 ? `${tidy(bytes / 1_024)} KiB` : `${tidy(bytes / 2 ** 20)} MiB`
}

function tidy(value: number): string {
  return Number.isInteger(value) ? `${value}` : value.toFixed(1)
}

function isFigure(rows: Table['rows'], column: number): boolean {
  return (
    rows.every((row) => /^[-–+]?[\d.,]*( |$)/.test(row[column] ?? '')) &&
    rows.some((row) => /\d/.test(row[column] ?? ''))
  )
}
