import { startRedisCluster } from '../../../test/support/redis-cluster.js'
import { startRedis } from '../../../test/support/redis-server.js'
import type { Phase } from '../protection.js'
import { readRedisVersion } from '../redis-commands.js'
import type { Service } from '../service.js'
import { ratioOf, type Spread } from '../statistics.js'
import { spreadCell } from '../table.js'
import { type Chapter, formatCount, formatTimes, type Growth, toSteps } from './chapter.js'
import { type Ground, measureSlices, type Sliced, startEmptyService } from './slices.js'

const PLACES = ['single', 'cluster'] as const
const PHASES = ['first', 'replay'] as const

type Place = (typeof PLACES)[number]

/** What a request takes on one Redis and on a cluster of three masters, among more and more keys; each step has its own servers. */
export async function measureRedis(ground: Ground, steps: readonly number[]): Promise<Chapter> {
  const closing: (() => Promise<unknown>)[] = []
  try {
    const bare = await startEmptyService('bare', { redisPort: 0 })
    closing.push(() => bare.end())
    const sliced: Sliced[] = [{ name: 'bare', service: bare, phase: 'first' }]
    let version = ''
    for (const keys of steps) {
      for (const place of PLACES) {
        ground.tell(`filling Redis, ${place}, with ${formatCount(keys)} keys`)
        const { service, port } = await startOn(place, closing)
        version = await readRedisVersion(port)
        await service.call('fill', keys)
        sliced.push(...PHASES.map((phase) => ({ name: nameOf(place, phase, keys), service, phase })))
      }
    }
    const micros = await measureSlices(sliced, ground)
    const ratio = (place: Place, phase: Phase, keys: number) =>
      ratioOf(micros(nameOf(place, phase, keys)), micros('bare'))
    const [from = 0, to = 0] = [steps[0], steps.at(-1)]
    const growths = PLACES.map(
      (place) => ratioOf(micros(nameOf(place, 'first', to)), micros(nameOf(place, 'first', from))).median,
    )
    const ofCluster = ratioOf(micros(nameOf('cluster', 'first', to)), micros(nameOf('single', 'first', to))).median
    return {
      ...redisChapter(ratio, steps, { times: Math.max(...growths), from, to }, ofCluster),
      versions: [`Redis ${version}`],
    }
  } finally {
    for (const close of closing.reverse()) await close()
  }
}

function nameOf(place: Place, phase: Phase, keys: number): string {
  return `${place}, ${phase}, ${keys}`
}

/** `port`: of a Redis of its own. */
interface Started {
  readonly service: Service
  readonly port: number
}

async function startOn(place: Place, closing: (() => Promise<unknown>)[]): Promise<Started> {
  if (place === 'single') {
    const server = await startRedis('--appendonly', 'no')
    closing.push(() => server.close())
    const service = await startEmptyService('ours-ioredis', { redisPort: server.port })
    closing.push(() => service.end())
    return { service, port: server.port }
  }
  const cluster = await startRedisCluster()
  closing.push(() => cluster.close())
  const port = cluster.nodes[0]?.port ?? 0
  const service = await startEmptyService('ours-redis-cluster', { redisPort: 0, redisClusterPort: port })
  closing.push(() => service.end())
  return { service, port }
}

function redisChapter(
  ratio: (place: Place, phase: Phase, keys: number) => Spread,
  steps: readonly number[],
  growth: Growth,
  ofCluster: number,
): Chapter {
  const columns = PHASES.flatMap((phase) => PLACES.map((place) => ({ place, phase })))
  const label = (place: Place, phase: Phase) => `${phase === 'first' ? 'first request' : 'replay'}, ${place}`
  return {
    name: 'redis',
    heading: 'Redis and Redis Cluster',
    sentence:
      `On a cluster of three masters a first request takes ${formatTimes(ofCluster)} times the CPU time that it takes on one Redis, ` +
      `among ${formatCount(growth.to)} keys.`,
    growth,
    chart: {
      title: 'CPU time of a request, in Redis',
      xAxis: 'live keys',
      yAxis: '× unprotected Express',
      steps: toSteps(steps),
      lines: columns.map(({ place, phase }) => ({
        label: label(place, phase),
        values: steps.map((keys) => ratio(place, phase, keys).median),
      })),
    },
    table: {
      columns: ['live keys', ...columns.map(({ place, phase }) => label(place, phase))],
      rows: steps.map((keys) => [
        formatCount(keys),
        ...columns.map(({ place, phase }) => spreadCell(ratio(place, phase, keys), 2)),
      ]),
    },
  }
}
