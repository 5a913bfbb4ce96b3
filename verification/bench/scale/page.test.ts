import { describe, expect, test } from 'vitest'
import type { Chapter } from './chapter.js'
import { createPage } from './page.js'

function chapter(name: string, times: number): Chapter {
  const steps = [1_000, 1_000_000].map((value) => ({ value, label: `${value}` }))
  return {
    name,
    heading: `About ${name}`,
    sentence: `It grows ${times} times.`,
    growth: { times, from: 1_000, to: 1_000_000 },
    chart: {
      title: `Cost of ${name}`,
      xAxis: 'keys',
      yAxis: 'ms',
      steps,
      lines: [{ label: 'ours', values: [1, times] }],
    },
    table: { columns: ['keys', 'ms'], rows: [['1,000', '1']] },
  }
}

const CLAIM = 'only memory grows'

describe('the page of how the cost grows', () => {
  test('claims that only memory grows if that was measured', () => {
    const page = createPage([chapter('memory', 1.1), chapter('redis', 0.95), chapter('rows', 1.8)], 'On a day.')
    expect(page).toContain(CLAIM)
    expect(page).toContain(
      'Among 1,000,000 keys in memory a first request takes 1.10 times the CPU time that it takes among 1,000',
    )
    expect(page).toContain('at most 1.80 times as many pages')
  })

  test.each([
    ['memory', 1.3, 1, 1.8],
    ['redis', 1, 1.3, 1.8],
    ['rows', 1, 1, 3],
  ])('does not claim it if more grows: %s', (_what, memory, redis, rows) => {
    const page = createPage([chapter('memory', memory), chapter('redis', redis), chapter('rows', rows)], 'On a day.')
    expect(page).not.toContain(CLAIM)
    expect(page).toContain(`takes ${memory.toFixed(2)} times the CPU time`)
  })

  test('says nothing of the whole if only a part was measured', () => {
    const page = createPage([chapter('memory', 1)], 'On a day.')
    expect(page).not.toContain(CLAIM)
    expect(page).not.toContain('null')
  })

  test('shows each chart, a sentence above it and the numbers below', () => {
    expect(createPage([chapter('memory', 2)], 'On a day.')).toContain(
      '## About memory\n\nIt grows 2 times.\n\n![Cost of memory](scale/memory.svg)\n\n| keys | ms |',
    )
  })
})
