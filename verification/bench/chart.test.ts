import { describe, expect, test } from 'vitest'
import { drawLineChart, type LineChart } from './chart.js'

const CHART: LineChart = {
  title: 'CPU & time',
  xAxis: 'keys',
  yAxis: 'ms',
  steps: [1_000, 10_000, 100_000].map((value) => ({ value, label: `${value}` })),
  lines: [
    { label: 'ours <1>', values: [1, 2, 4] },
    { label: 'bare', values: [8, 8, 0.5] },
  ],
}
const svg = drawLineChart(CHART)

/** Of each line, the places of its values. */
function marksOf(drawn: string, line: number): [x: number, y: number][] {
  const marks = drawn.matchAll(new RegExp(`<circle class="mark-${line}" cx="([\\d.]+)" cy="([\\d.]+)"`, 'g'))
  return [...marks].map(([, x, y]) => [Number(x), Number(y)])
}

describe('a chart', () => {
  test('has steps that are powers of ten at equal distances', () => {
    const [first, second, third] = marksOf(svg, 0).map(([x]) => x) as [number, number, number]
    expect(third - second).toBeCloseTo(second - first, 0)
  })

  test('has all lines on one scale, which begins at 0', () => {
    const [one, two, four] = marksOf(svg, 0).map(([, y]) => y) as [number, number, number]
    expect(two - four).toBeCloseTo(2 * (one - two), 0)
    expect(marksOf(svg, 1)[0]?.[1]).toBeCloseTo(one - 7 * (one - two), 0)
    expect(svg).toContain('>0</text>')
  })

  test.each([0.003, 0.7, 1, 1.9, 5, 999, 12_345])('whose highest value is %d has everything inside', (most) => {
    const drawn = drawLineChart({ ...CHART, lines: [{ label: 'ours', values: [most / 2, most / 3, most] }] })
    const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(drawn) as RegExpExecArray
    const places = [...drawn.matchAll(/ c?x="([\d.]+)" c?y="([\d.]+)"/g)]
    expect(places.length).toBeGreaterThan(10)
    for (const [, x, y] of places) {
      expect(Number(x)).toBeLessThan(Number(width))
      expect(Number(y)).toBeLessThan(Number(height))
    }
    // Below the legend.
    for (const [, y] of marksOf(drawn, 0)) expect(y).toBeGreaterThan(85)
  })

  test('has names as text, whatever they contain', () => {
    expect(svg).toContain('ours &#60;1&#62;')
    expect(svg).toContain('CPU &#38; time')
    expect(svg).not.toMatch(/&(?!#)/)
  })

  test('can be read on a light page and on a dark one', () => {
    expect(svg).toContain('prefers-color-scheme:dark')
  })
})
