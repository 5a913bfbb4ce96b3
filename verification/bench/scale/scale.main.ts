// How the cost grows: `npm run bench:scale`, and with `-- --quick rows` only to see that a part of it works.
import { cpus, loadavg } from 'node:os'
import { leaveServerCore, PINNING } from '../cores.js'
import { startGenerator } from '../generator.js'
import { startProgress } from '../progress.js'
import { asText } from '../table.js'
import { measureFingerprints, measureReplays } from './bodies.js'
import type { Chapter } from './chapter.js'
import { measureConnections } from './connections.js'
import { measureInMemory } from './in-memory.js'
import { writePage } from './page.js'
import { measureRedis } from './redis-cluster.js'
import { measureRows } from './rows.js'
import type { Ground } from './slices.js'

const PARTS = ['memory', 'rows', 'bodies', 'connections', 'redis'] as const

type Part = (typeof PARTS)[number]

const [KB, MB] = [2 ** 10, 2 ** 20]
const BODIES = [KB, 64 * KB, MB]
const FULL = {
  load: { rounds: 15, sliceSeconds: 0.2, warmUpSeconds: 2 },
  inMemory: [1_000, 10_000, 100_000, 1_000_000],
  rows: [1_000, 10_000, 100_000, 1_000_000],
  inRedis: [1_000, 10_000, 100_000],
}
/** To see that it works: its figures say little. */
const QUICK: typeof FULL = {
  load: { rounds: 3, sliceSeconds: 0.1, warmUpSeconds: 0.5 },
  inMemory: [1_000, 10_000, 100_000],
  rows: [1_000, 10_000, 100_000],
  inRedis: [1_000, 10_000],
}
const CONNECTIONS = [1, 32, 512]

const args = process.argv.slice(2)
const isQuick = args.includes('--quick')
const named = args.filter((arg) => !arg.startsWith('--'))
for (const arg of args) {
  if (![...PARTS, '--quick', '--docs'].includes(arg)) {
    throw new RangeError(
      `Nothing is called "${arg}". There are: ${PARTS.join(', ')}; --quick, and --docs to write docs/scale.md all the same.`,
    )
  }
}
const isWhole = named.length === 0
const wants = (part: Part) => isWhole || named.includes(part)
const { load, inMemory, rows, inRedis } = isQuick ? QUICK : FULL
const startedAt = new Date()
const loadBefore = loadavg()[0] ?? Number.NaN

leaveServerCore()
const progress = startProgress()
const generator = startGenerator()
const ground: Ground = { ...load, generator, tell: progress.tell }
const none = { redisPort: 0 }

try {
  const chapters: Chapter[] = []
  if (wants('memory')) chapters.push(...(await measureInMemory(ground, inMemory, none)))
  if (wants('redis')) chapters.push(await measureRedis(ground, inRedis))
  if (wants('rows')) chapters.push(await measureRows(ground, rows))
  if (wants('bodies')) {
    chapters.push(await measureFingerprints(ground, BODIES), await measureReplays(ground, BODIES, none))
  }
  // Opening hundreds of connections must not count for much.
  const longer = { ...ground, sliceSeconds: 3 * ground.sliceSeconds }
  if (wants('connections')) chapters.push(await measureConnections(longer, CONNECTIONS, none))
  progress.end()
  for (const { heading, sentence, table } of chapters)
    console.log(asText({ title: heading, notes: [sentence], ...table }))
  const isForDocs = isWhole && (!isQuick || args.includes('--docs'))
  const written = await writePage(isForDocs ? 'docs' : 'build/bench', chapters, describeConditions(chapters))
  console.log(`Written in ${((Date.now() - startedAt.getTime()) / 60_000).toFixed(1)} minutes: ${written.join(', ')}`)
} finally {
  progress.end()
  await generator.end()
}

function describeConditions(chapters: readonly Chapter[]): string {
  const { rounds, sliceSeconds } = load
  const day = startedAt.toISOString().slice(0, 10)
  const kind = isQuick ? `**By a quick run, whose numbers say little**, on ${day}` : `On ${day}`
  const versions = [`Node ${process.versions.node}`, ...chapters.flatMap((chapter) => chapter.versions ?? [])]
  const processor = `${cpus().length} cores (${cpus()[0]?.model.trim() ?? 'unknown'}), load before it ${loadBefore.toFixed(1)}`
  const requests = '32 connections, 200 B of JSON in, 150 B out'
  return `${kind}, ${[...versions, processor, PINNING.replace(';', ','), requests].join(', ')}, ${rounds} slices of ${sliceSeconds} s.`
}
