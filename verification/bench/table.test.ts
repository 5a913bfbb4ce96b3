import { expect, test } from 'vitest'
import { asMarkdown, asText, bytesCell, countCell, spreadCell, type Table } from './table.js'

const TABLE: Table = {
  title: 'What it costs',
  columns: ['', 'µs', 'fails'],
  rows: [
    ['bare', '90.1', ''],
    ['a|b', '101.5 (99.0–110.2)', 'runs twice'],
  ],
  notes: ['Less is better.'],
}

test('text aligns names at their begin and figures at their end', () => {
  expect(asText(TABLE).split('\n')).toEqual([
    'What it costs',
    '                        µs  fails',
    '  bare                90.1',
    '  a|b   101.5 (99.0–110.2)  runs twice',
    '  · Less is better.',
    '',
  ])
})

test('Markdown escapes what would end a cell', () => {
  expect(asMarkdown(TABLE)).toBe(
    [
      '### What it costs',
      '',
      '|  | µs | fails |',
      '| --- | ---: | --- |',
      '| bare | 90.1 |  |',
      '| a\\|b | 101.5 (99.0–110.2) | runs twice |',
      '',
      '- Less is better.',
      '',
    ].join('\n'),
  )
})

test('a figure of several rounds says from where to where they went', () => {
  expect(spreadCell({ median: 1.084, least: 1.05, most: 1.116 }, 2)).toBe('1.08 (1.05–1.12)')
  expect(spreadCell({ median: 1, least: 1, most: 1 }, 2)).toBe('1.00')
  expect(spreadCell({ median: Number.NaN, least: Number.NaN, most: Number.NaN }, 2)).toBe('–')
})

test('bytes and counts are written for a reader', () => {
  expect([200, 2_048, 1_536, 1_048_576].map(bytesCell)).toEqual(['200 B', '2 KiB', '1.5 KiB', '1 MiB'])
  expect(countCell(1_234_567.8)).toBe('1,234,568')
})
