import type { Servers } from '../protection.js'
import { ratioOf } from '../statistics.js'
import { spreadCell } from '../table.js'
import { type Chapter, formatCount, formatTimes, toFirstAndReplayLines, toSteps } from './chapter.js'
import { type Ground, measureSlices, type Sliced, startEmptyService } from './slices.js'

/** What a request takes on more and more connections, in memory, compared with unprotected Express on as many. */
export async function measureConnections(ground: Ground, steps: readonly number[], servers: Servers): Promise<Chapter> {
  const bare = await startEmptyService('bare', servers)
  const ours = await startEmptyService('ours-memory', servers)
  try {
    const sliced = steps.flatMap((connections): Sliced[] => [
      { name: `bare ${connections}`, service: bare, phase: 'first', connections },
      { name: `first ${connections}`, service: ours, phase: 'first', connections },
      { name: `replay ${connections}`, service: ours, phase: 'replay', connections },
    ])
    const micros = await measureSlices(sliced, ground)
    const ratios = steps.map((connections) => ({
      connections,
      first: ratioOf(micros(`first ${connections}`), micros(`bare ${connections}`)),
      replay: ratioOf(micros(`replay ${connections}`), micros(`bare ${connections}`)),
    }))
    return connectionsChapter(ratios)
  } finally {
    await bare.end()
    await ours.end()
  }
}

type Ratio = { readonly connections: number } & Readonly<Record<'first' | 'replay', ReturnType<typeof ratioOf>>>

function connectionsChapter(ratios: readonly Ratio[]): Chapter {
  const [fewest, most] = [ratios[0], ratios.at(-1)] as [Ratio, Ratio]
  return {
    name: 'connections',
    heading: 'Connections',
    sentence:
      `On ${formatCount(fewest.connections)} connection a first request takes ${formatTimes(fewest.first.median)} times the CPU time of ` +
      `unprotected Express, and on ${formatCount(most.connections)} connections ${formatTimes(most.first.median)} times.`,
    chart: {
      title: 'CPU time of a request, by connections',
      xAxis: 'connections',
      yAxis: '× unprotected Express on as many',
      steps: toSteps(ratios.map(({ connections }) => connections)),
      lines: toFirstAndReplayLines(ratios),
    },
    table: {
      columns: ['connections', 'first request, × Express', 'replay, × Express'],
      rows: ratios.map(({ connections, first, replay }) => [
        formatCount(connections),
        spreadCell(first, 2),
        spreadCell(replay, 2),
      ]),
    },
  }
}
