/** One line of a chart: its points in the order of their steps. */
export interface Line {
  readonly label: string
  readonly values: readonly number[]
}

/** Lines from 0 over a few steps, which are powers of ten or of two: their axis is logarithmic. */
export interface LineChart {
  readonly title: string
  /** What the steps count, with its unit. */
  readonly xAxis: string
  /** What the values are, with their unit. */
  readonly yAxis: string
  readonly steps: readonly { readonly value: number; readonly label: string }[]
  /** At most four. */
  readonly lines: readonly Line[]
}

/** Readable at its own size, and on a phone, whose width is about the same. */
const [WIDTH, HEIGHT] = [420, 320]
const PLOT = { left: 52, right: WIDTH - 24, top: 92, bottom: HEIGHT - 46 }

/** An SVG that can be read on a light page and on a dark one, and without colours by its dashes and marks. */
export function drawLineChart(chart: LineChart): string {
  const { title, xAxis, yAxis, steps, lines } = chart
  const toX = createXScale(steps.map(({ value }) => value))
  const { toY, ticks } = createYScale(chart)
  const parts = [
    `<text class="title" x="0" y="16">${escapeText(title)}</text>`,
    ...lines.map(({ label }, i) => drawLegend(label, i)),
    `<text x="0" y="${PLOT.top - 12}">${escapeText(yAxis)}</text>`,
    ...ticks.flatMap((tick) => [
      `<path class="grid" d="M${PLOT.left} ${toY(tick)}H${PLOT.right}"/>`,
      `<text class="end" x="${PLOT.left - 8}" y="${Number(toY(tick)) + 4}">${toTickLabel(tick)}</text>`,
    ]),
    ...steps.map(
      ({ value, label }) =>
        `<text class="middle" x="${toX(value)}" y="${PLOT.bottom + 18}">${escapeText(label)}</text>`,
    ),
    `<text class="middle" x="${(PLOT.left + PLOT.right) / 2}" y="${HEIGHT - 8}">${escapeText(xAxis)}</text>`,
    ...lines.map(({ values }, i) =>
      drawLine(
        values.map((value, step) => [toX(steps[step]?.value ?? Number.NaN), toY(value)]),
        i,
      ),
    ),
  ]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-label="${escapeText(title)}">
<style>${STYLE}</style>
${parts.join('\n')}
</svg>
`
}

/** Two in a row. */
function drawLegend(label: string, line: number): string {
  const x = (line % 2) * (WIDTH / 2)
  const y = 38 + Math.floor(line / 2) * 20
  return `<path class="line line-${line}" d="M${x} ${y - 4}H${x + 26}"/><text x="${x + 32}" y="${y}">${escapeText(label)}</text>`
}

function drawLine(points: readonly (readonly [x: string, y: string])[], line: number): string {
  const path = `<path class="line line-${line}" d="M${points.map((point) => point.join(' ')).join('L')}"/>`
  return path + points.map(([x, y]) => `<circle class="mark-${line}" cx="${x}" cy="${y}" r="3.5"/>`).join('')
}

function createXScale(values: readonly number[]): (value: number) => string {
  const [least = 1, most = 1] = [values[0], values.at(-1)]
  // Half a label's width stays free at both ends.
  const [from, to] = [PLOT.left + 26, PLOT.right - 20]
  return (value) => (from + ((to - from) * Math.log(value / least)) / Math.log(most / least)).toFixed(1)
}

function createYScale({ lines }: LineChart) {
  const ticks = listMultiples(Math.max(...lines.flatMap(({ values }) => values)))
  const high = ticks.at(-1) ?? 1
  const toY = (value: number) => (PLOT.bottom - ((PLOT.bottom - PLOT.top) * value) / high).toFixed(1)
  return { toY, ticks }
}

/** From 0 to at least `most`, in four to six round steps. */
function listMultiples(most: number): number[] {
  const power = 10 ** Math.floor(Math.log10(most))
  const step = ([0.2, 0.5, 1, 2].find((each) => most / (each * power) <= 5) ?? 2) * power
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => Number((i * step).toPrecision(6)))
}

function toTickLabel(value: number): string {
  return value.toLocaleString('en-GB', { maximumFractionDigits: 3 })
}

const STYLE = [
  'text{font:13px system-ui,sans-serif;fill:#424a53}',
  '.title{font-size:15px;font-weight:600;fill:#1f2328}.end{text-anchor:end}.middle{text-anchor:middle}',
  '.grid{stroke:#d1d9e0}.line{fill:none;stroke-width:2.5}',
  '.line-0{stroke:#1a7f37}.line-1{stroke:#0969da;stroke-dasharray:7 4}',
  '.line-2{stroke:#bc4c00;stroke-dasharray:2 4}.line-3{stroke:#8250df;stroke-dasharray:10 3 2 3}',
  '.mark-0{fill:#1a7f37}.mark-1{fill:#0969da}.mark-2{fill:#bc4c00}.mark-3{fill:#8250df}',
  '@media(prefers-color-scheme:dark){text{fill:#b7bec6}.title{fill:#f0f6fc}.grid{stroke:#3d444d}',
  '.line-0{stroke:#3fb950}.line-1{stroke:#58a6ff}.line-2{stroke:#db6d28}.line-3{stroke:#bc8cff}',
  '.mark-0{fill:#3fb950}.mark-1{fill:#58a6ff}.mark-2{fill:#db6d28}.mark-3{fill:#bc8cff}}',
].join('')

/** Safe in text and in attributes. */
function escapeText(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}
