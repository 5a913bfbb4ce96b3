import type { Phase } from '../protection.js'
import { type Candidate, CONNECTIONS, type Figures, type Ground, measureInRounds } from '../rounds.js'
import type { Services } from '../services.js'
import { ratioOf, type Spread, spreadOf } from '../statistics.js'
import { bytesCell, countCell, spreadCell, type Table } from '../table.js'
import { variantOf } from '../variants.js'

/** One thing that grows, step by step. */
interface Growth {
  readonly title: string
  readonly column: string
  readonly steps: readonly number[]
  readonly variants: readonly string[]
  readonly phase: Phase
  readonly cell: (step: number) => string
  readonly load: (step: number) => Partial<Candidate>
  readonly notes?: readonly string[]
}

const RECORDS = 'records before'
const SIZES = [200, 2_048, 16_384, 131_072, 1_048_576]
const BODY_VARIANTS = ['bare', 'ours-memory', 'ours-ioredis']

function growths(mostRecords: { readonly memory: number; readonly redis: number }): readonly Growth[] {
  return [
    {
      title: 'Cost by size of the request',
      column: 'body',
      steps: SIZES,
      variants: BODY_VARIANTS,
      phase: 'first',
      cell: bytesCell,
      load: (orderBytes) => ({ orderBytes }),
    },
    {
      title: 'Cost by size of the answer, first execution',
      column: 'answer',
      steps: [150, ...SIZES.slice(1)],
      variants: BODY_VARIANTS,
      phase: 'first',
      cell: bytesCell,
      load: (answerBytes) => ({ answerBytes }),
    },
    {
      title: 'Cost by size of the answer, replay',
      column: 'answer',
      steps: [150, ...SIZES.slice(1)],
      variants: BODY_VARIANTS,
      phase: 'replay',
      cell: bytesCell,
      load: (answerBytes) => ({ answerBytes }),
    },
    {
      title: 'Cost by number of connections',
      column: 'connections',
      steps: [1, 8, CONNECTIONS, 128, 256],
      variants: BODY_VARIANTS,
      phase: 'first',
      cell: countCell,
      load: (connections) => ({ connections }),
    },
    ...(['memory', 'redis'] as const).map((store) => ({
      title: `Cost by number of completed records, ${store}`,
      column: RECORDS,
      steps: [1_000, 10_000, 100_000, 1_000_000].filter((count) => count <= mostRecords[store]),
      variants: store === 'memory' ? ['floor-memory', 'ours-memory'] : ['floor-ioredis', 'ours-ioredis'],
      phase: 'first' as const,
      cell: countCell,
      load: (records: number) => ({ records }),
      notes: ['The first executions of the round come on top.'],
    })),
  ]
}

export interface Grown {
  readonly tables: readonly Table[]
  /** What a request costs in memory among the most records, against what it costs among the fewest: ours, and the floor. */
  readonly growthInMemory: { readonly ours: Spread; readonly floor: Spread }
}

/** How the cost of a request grows with what it depends on. */
export async function growthTables(
  services: Services,
  ground: Ground,
  seconds: number,
  mostRecords: { readonly memory: number; readonly redis: number },
): Promise<Grown> {
  // Their engines are warm after the first few.
  const quicker = { ...ground, warmUpRequests: Math.ceil(ground.warmUpRequests / 100) }
  const tables: Table[] = []
  let growthInMemory: Grown['growthInMemory'] | undefined
  for (const growth of growths(mostRecords)) {
    const figures = await measureGrowth(growth, services, quicker, seconds)
    tables.push(growthTable(growth, figures))
    if (growth.variants.includes('ours-memory') && growth.column === RECORDS) {
      const grownBy = (variant: string) => {
        const of = (step: number | undefined) => figures(variant, step ?? 0).cpuMicros
        return ratioOf(of(growth.steps.at(-1)), of(growth.steps[0]))
      }
      growthInMemory = { ours: grownBy('ours-memory'), floor: grownBy('floor-memory') }
    }
  }
  return { tables, growthInMemory: growthInMemory as Grown['growthInMemory'] }
}

type FiguresOf = (variant: string, step: number) => Figures

async function measureGrowth(growth: Growth, services: Services, ground: Ground, seconds: number): Promise<FiguresOf> {
  const { title, column, steps, variants, phase, cell, load } = growth
  const nameOf = (variant: string, step: number) => `${variant}, ${column} ${cell(step)}`
  const candidates: Candidate[] = []
  for (const step of steps) {
    for (const variant of variants) {
      const service = await services.of(variant)
      candidates.push({ name: nameOf(variant, step), service, phase, seconds, ...load(step) })
    }
  }
  const figures = await measureInRounds(title, candidates, ground)
  return (variant, step) => figures.get(nameOf(variant, step)) as Figures
}

function growthTable({ title, column, steps, variants, cell, notes = [] }: Growth, of: FiguresOf): Table {
  const [baseline = ''] = variants
  const [firstStep = 0] = steps
  const rows = variants.flatMap((variant) =>
    steps.map((step) => {
      const { cpuMicros, perSecond, p99Ms, mistakes } = of(variant, step)
      return [
        variantOf(variant).label,
        cell(step),
        spreadCell(spreadOf(cpuMicros), 1),
        spreadCell(ratioOf(cpuMicros, of(baseline, step).cpuMicros), 2),
        spreadCell(ratioOf(cpuMicros, of(variant, firstStep).cpuMicros), 2),
        countCell(spreadOf(perSecond).median),
        spreadCell(spreadOf(p99Ms), 2),
        mistakes === 0 ? '' : `${mistakes} wrong answers`,
      ]
    }),
  )
  const isFloor = variantOf(baseline).kind === 'floor'
  return {
    title,
    columns: [
      '',
      column,
      'CPU µs a request',
      isFloor ? '× floor' : '× bare',
      '× its first row',
      'requests/s',
      'p99 ms',
      '',
    ],
    rows,
    notes,
  }
}
