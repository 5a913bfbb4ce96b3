import { CHECKS, type Check } from './checks.js'
import { faultsOf, type Report } from './layer.js'
import type { LayerName } from './layers.js'
import { isFound, type Trial } from './mutants/trial.js'

/** What a run of a layer came to; no report: it broke. */
export interface Row {
  readonly layer: LayerName
  readonly seconds: number
  readonly report?: Report
}

/** What was run, as Markdown: a table of layers, and one of checks with the planted faults that each of them found. */
export function proofTable(rows: readonly Row[], trials: readonly Trial[]): string {
  const tables = [
    markdown(['layer', 'what it did', 'checks', 'violations', 'planted faults found', 'time'], layerRows(rows, trials)),
  ]
  if (trials.length > 0) {
    tables.push(
      markdown(['', 'what must hold', 'applied', 'in', 'a planted fault that it found'], checkRows(rows, trials)),
    )
  }
  return tables.join('\n')
}

function layerRows(rows: readonly Row[], trials: readonly Trial[]): string[][] {
  return rows.map(({ layer, seconds, report }) => {
    const own = trials.filter(({ mutant }) => mutant.layer === layer)
    const planted = own.length === 0 ? '' : `${own.filter(isFound).length} of ${own.length}`
    if (report === undefined) return [layer, 'no report', '', '', planted, `${seconds} s`]
    const figures = Object.entries(report.figures).map(([name, figure]) => `${number(figure)} ${name}`)
    const checks = Object.keys(CHECKS).filter((check) => check in report.checked)
    return [layer, figures.join(', '), checks.join(' '), number(faultsOf(report).length), planted, `${seconds} s`]
  })
}

function checkRows(rows: readonly Row[], trials: readonly Trial[]): string[][] {
  return (Object.keys(CHECKS) as Check[]).map((check) => {
    const layers = rows.filter(({ report }) => (report?.checked[check] ?? 0) > 0)
    const times = layers.reduce((sum, { report }) => sum + (report?.checked[check] ?? 0), 0)
    return [check, CHECKS[check], number(times), layers.map(({ layer }) => layer).join(', '), witness(check, trials)]
  })
}

/** A fault that no other check saw, or the checks that see such faults too. */
function witness(check: Check, trials: readonly Trial[]): string {
  const found = trials.filter(({ foundBy }) => foundBy.includes(check))
  const alone = found.find(({ foundBy }) => foundBy.length === 1)
  if (alone !== undefined) return `${alone.mutant.name} (no other check did)`
  const [first] = [...found].sort((a, b) => a.foundBy.length - b.foundBy.length)
  if (first === undefined) return 'none'
  const others = first.foundBy.filter((other) => other !== check)
  return `${first.mutant.name} (so did ${others.join(', ')})`
}

function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`
  return line(head) + line(head.map(() => '---')) + rows.map(line).join('')
}

function number(figure: number): string {
  return figure.toLocaleString('en-US', { maximumFractionDigits: 2 })
}
