// `npm run cost`: the parts of what a request costs, counted on the Node that runs this, as a table of docs/benchmarks.md.
import { fileURLToPath } from 'node:url'
import { startRedis } from '../../test/support/redis-server.js'
import { Measured, type Phase } from './measured.js'
import { measureCpuRatio } from './ratios.js'

if (process.argv.length > 2) {
  console.error(`Unknown argument: ${process.argv.slice(2).join(' ')}; it takes none.`)
  process.exit(2)
}

type Row = readonly [what: string, service: string, phase: Phase, floor: string]

const BARE = 'express, nothing kept, no fingerprint'
const PARTS: readonly Row[] = [
  ['holding the response; key, scope, claim, lease, end', BARE, 'first', 'express'],
  ['the fingerprint of 200 B of JSON', 'express, nothing kept', 'first', BARE],
  ['a record in memory', 'express, memory', 'first', 'express, nothing kept'],
  ['**a first request, memory**, beside an unprotected one', 'express, memory', 'first', 'express'],
  ['**a replay, memory**, beside an unprotected first request', 'express, memory', 'replay', 'express'],
  ['two commands of Redis by hand', 'express, redis by hand', 'first', 'express'],
  ['**a first request, Redis**, beside two commands by hand', 'express, redis', 'first', 'express, redis by hand'],
  ['**a replay, Redis**, beside one command by hand', 'express, redis', 'replay', 'express, redis by hand'],
  ['**a first request, Fetch, memory**, beside an unprotected one', 'fetch, memory', 'first', 'fetch'],
  ['**a replay, Fetch, memory**', 'fetch, memory', 'replay', 'fetch'],
  ['**a first request, Hono, memory**, beside an unprotected one', 'hono, memory', 'first', 'hono'],
  ['**a replay, Hono, memory**', 'hono, memory', 'replay', 'hono'],
]

const RATIOS: readonly (readonly [service: string, phase: Phase, floor: string])[] = [
  ['express, memory', 'first', 'express'],
  ['express, memory', 'replay', 'express'],
  ['express, redis', 'first', 'express, redis by hand'],
  ['express, redis', 'replay', 'express, redis by hand'],
  ['fetch, memory', 'first', 'fetch'],
  ['hono, memory', 'first', 'hono'],
]

const redis = await startRedis('--appendonly', 'no')
try {
  const program = fileURLToPath(new URL('services.js', import.meta.url))
  const measured = new Measured(program, { REDIS_PORT: `${redis.port}` })
  console.log(`| Node ${process.versions.node} | bytes | promises |`)
  console.log('| --- | ---: | ---: |')
  for (const [what, service, phase, floor] of PARTS) {
    const { bytes, promises } = await measured.costOver(floor, service, phase)
    console.log(`| ${what} | ${bytes.toLocaleString('en')} | ${promises} |`)
  }
  console.log(
    `| what a record of 150 B keeps, with its texts | ${Math.round(await measured.kept('express, memory'))} | |`,
  )
  console.log('\n| CPU of a request, beside one of | ratio | from | to |')
  console.log('| --- | ---: | ---: | ---: |')
  for (const row of RATIOS) {
    const { median, least, most } = await measureCpuRatio(program, { REDIS_PORT: `${redis.port}` }, row)
    const [service, phase, floor] = row
    console.log(
      `| ${service}, ${phase}, beside ${floor} | ${[median, least, most].map((x) => x.toFixed(2)).join(' | ')} |`,
    )
  }
} finally {
  await redis.close()
}
