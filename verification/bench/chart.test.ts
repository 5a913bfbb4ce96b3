import { expect, test } from 'vitest'
import { chartOf } from './chart.js'

const chart = chartOf('CPU & time', 'µs', [
  { title: 'First', bars: [{ label: 'bare <1>', value: 50, emphasis: 'floor' }] },
  { title: 'Replay', bars: [{ label: 'ours', value: 100, emphasis: 'ours' }] },
])

test('all bars have one scale, whatever their panel', () => {
  const widths = [...chart.matchAll(/<rect [^>]*width="([\d.]+)"/g)].map(([, width]) => Number(width))
  expect(widths).toHaveLength(2)
  expect(widths[1]).toBe(2 * (widths[0] as number))
})

test('names are text, whatever they hold', () => {
  expect(chart).toContain('bare &#60;1&#62;')
  expect(chart).toContain('CPU &#38; time')
  expect(chart).not.toMatch(/&(?!#)/)
})

test('it is read on a light page and on a dark one', () => {
  expect(chart).toContain('prefers-color-scheme:dark')
})

test('nothing is outside of it', () => {
  const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(chart) as RegExpExecArray
  for (const [, x, y] of chart.matchAll(/<text[^>]* x="([\d.]+)" y="([\d.]+)"/g)) {
    expect(Number(x)).toBeLessThan(Number(width))
    expect(Number(y)).toBeLessThan(Number(height))
  }
})
