import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { drawLineChart } from '../chart.js'
import { rowsAsMarkdown } from '../table.js'
import { type Chapter, formatCount, formatTimes } from './chapter.js'

/** What is this much or less is said not to grow: the rounds of one number of keys differ by as much. */
const MOST_OF_A_CONSTANT = 1.2
/** An index of a million rows is one or two pages deeper than one of a thousand. */
const MOST_OF_A_DEEPER_INDEX = 2.5

/** Writes the page into a folder, and its charts beside it. Returns what was written. */
export async function writePage(folder: string, chapters: readonly Chapter[], conditions: string): Promise<string[]> {
  await mkdir(join(folder, 'scale'), { recursive: true })
  const files = new Map([[join(folder, 'scale.md'), createPage(chapters, conditions)]])
  for (const { name, chart } of chapters) files.set(join(folder, 'scale', `${name}.svg`), drawLineChart(chart))
  for (const [file, text] of files) await writeFile(file, text)
  return [...files.keys()]
}

/** `conditions`: the date, the versions and the machine, in one line. */
export function createPage(chapters: readonly Chapter[], conditions: string): string {
  const parts = [
    '# How the cost grows',
    createLead(chapters),
    'CPU times are of the service, as ratios within one run: median (least–most) of slices that alternate.',
    ...chapters.map(createSection),
    '## Measure it yourself',
    '`npm run bench:scale` measures this and writes the page. A slice of first requests adds some thousand keys.',
    conditions,
  ]
  return `${parts.filter((part) => part !== null).join('\n\n')}\n`
}

function createSection({ name, heading, sentence, chart, table }: Chapter): string {
  return `## ${heading}\n\n${sentence}\n\n![${chart.title}](scale/${name}.svg)\n\n${rowsAsMarkdown(table)}`
}

/** What grows with the number of keys; `null` if not all of it was measured. */
function createLead(chapters: readonly Chapter[]): string | null {
  const growthOf = (name: string) => chapters.find((chapter) => chapter.name === name)?.growth
  const [memory, redis, rows] = ['memory', 'redis', 'rows'].map(growthOf)
  if (memory === undefined || redis === undefined || rows === undefined) return null
  const isConstant = Math.max(memory.times, redis.times) <= MOST_OF_A_CONSTANT && rows.times <= MOST_OF_A_DEEPER_INDEX
  const claim = isConstant ? '**With the number of keys only memory grows, and the depth of an index.** ' : ''
  return (
    `${claim}Among ${formatCount(memory.to)} keys in memory a first request takes ${formatTimes(memory.times)} times the CPU time that it ` +
    `takes among ${formatCount(memory.from)}, and among ${formatCount(redis.to)} in Redis ${formatTimes(redis.times)} times. Among ` +
    `${formatCount(rows.to)} rows it touches at most ${formatTimes(rows.times)} times as many pages.`
  )
}
