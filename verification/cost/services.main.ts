// What a request costs: node --expose-gc --single-threaded services.mjs SERVICE first|replay|passing cost|kept|slices
import { createHook } from 'node:async_hooks'
import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics } from 'node:v8'
import { Redis } from 'ioredis'
import type { Cost } from './measured.js'
import { SERVICES } from './service.js'

const [, , name = '', phase, measure] = process.argv
/** Until V8 has compiled what it will; and until maps and lists have doubled, so that as many again have room. */
const WARM_UP = { cost: 3_000, kept: 10_000 }
const REQUESTS = 400
const RECORDS = 100_000
/** Keys of its own, since runs share a Redis. */
const RUN = String(process.pid).padStart(8, '0')
/** A replay is of one of these. */
const REPLAYED = 100

const service = await SERVICES[name]?.()
if (service === undefined) throw new Error(`There is no service ${name}.`)
const { send } = service
let sent = 0

/** Each has its own key, or, as a replay, one that has been. */
function sendMany(amount: number): Promise<void> {
  return new Promise((resolve) => {
    let left = amount
    const next = (): void => {
      if (left-- === 0) resolve()
      else send(phase === 'passing' ? null : keyOf(phase === 'replay' ? sent++ % REPLAYED : sent++), next)
    }
    next()
  })
}

function keyOf(i: number): string {
  return `${RUN}-ceea-4e7a-9c1d-${String(i).padStart(12, '0')}`
}

const collect = globalThis.gc as () => void
let collections = 0
new PerformanceObserver((list) => {
  collections += list.getEntries().length
}).observe({ entryTypes: ['gc'] })

/** Everything that is due at once, such as the news of collections. */
async function settled(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
}

/** Bytes that V8 allocated for each request; `null`: a collection has changed what is counted. */
async function bytes(): Promise<number | null> {
  collect()
  await settled()
  collections = 0
  const before = young()
  await sendMany(REQUESTS)
  const after = young()
  await settled()
  return collections === 0 ? (after - before) / REQUESTS : null
}

/** What was allocated since the last collection; not what the compiler allocates elsewhere, when it gets to it. */
function young(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_used_size ?? 0
}

/** Bytes that each record keeps on V8's heap, after collections. */
async function kept(): Promise<number> {
  const live = async (): Promise<number> => {
    for (let i = 0; i < 5; i++) {
      collect()
      await settled()
    }
    return process.memoryUsage().heapUsed
  }
  const before = await live()
  await sendMany(RECORDS)
  return ((await live()) - before) / RECORDS
}

/** What one of so many makes: whole numbers, since the process itself makes a few now and then. */
async function counts(): Promise<Omit<Cost, 'bytes'>> {
  const made: Record<string, number> = { PROMISE: 0, Timeout: 0 }
  const redis = await redisCounts()
  const trips = service?.trips?.() ?? 0
  const hook = createHook({
    init(_id, type) {
      made[type] = (made[type] ?? 0) + 1
    },
  }).enable()
  await sendMany(REQUESTS)
  hook.disable()
  const { commands, reads } = await redisCounts()
  const each = (count: number) => Math.round(count / REQUESTS)
  return {
    promises: each(made.PROMISE as number),
    timers: each(made.Timeout as number),
    commands: each(commands - redis.commands),
    reads: each(reads - redis.reads),
    trips: each((service?.trips?.() ?? 0) - trips),
  }
}

/** What Redis has been asked, without what its scripts call. */
async function redisCounts(): Promise<{ readonly commands: number; readonly reads: number }> {
  if (!name.includes('redis')) return { commands: 0, reads: 0 }
  asking ??= new Redis(Number(process.env.REDIS_PORT), '127.0.0.1')
  const info = await asking.info('everything')
  const number = (pattern: RegExp) => Number(pattern.exec(info)?.[1] ?? 0)
  // Scripts call SET, too.
  const commands = number(name.includes('by hand') ? /cmdstat_set:calls=(\d+)/ : /cmdstat_evalsha:calls=(\d+)/)
  return { commands, reads: number(/total_reads_processed:(\d+)/) }
}

let asking: Redis | undefined

/** As many requests as each message says; replies with their CPU time, in microseconds a request. */
function serveSlices(): void {
  process.on('message', async (requests: number) => {
    const before = process.cpuUsage()
    await sendMany(requests)
    const { user, system } = process.cpuUsage(before)
    process.send?.({ cpu: (user + system) / requests })
  })
  process.on('disconnect', () => process.exit())
}

if (measure === 'slices') serveSlices()
else await measureOnce(measure as keyof typeof WARM_UP)

async function measureOnce(asked: keyof typeof WARM_UP): Promise<void> {
  await sendMany(WARM_UP[asked])
  if (asked === 'kept') console.log(JSON.stringify({ kept: await kept() }))
  else {
    const samples = [await bytes(), await bytes(), await bytes()]
    // What is allocated now and then, and is no request's, only adds.
    const least = Math.min(...samples.map((sample) => sample ?? Number.POSITIVE_INFINITY))
    console.log(JSON.stringify({ bytes: Math.round(least), ...(await counts()), collected: samples.includes(null) }))
  }
  process.exit(0)
}
