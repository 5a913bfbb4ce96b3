import { measureAfresh } from '../afresh.js'
import type { MeasuredNode } from '../nodes.js'
import { CONNECTIONS, type Figures, type Ground } from '../rounds.js'
import { ratioOf, type Spread, spreadOf } from '../statistics.js'
import { spreadCell, type Table } from '../table.js'
import { DATABASE_VARIANTS, type DatabaseName, type Variant } from '../variants.js'

/** A transaction costs more than a request in memory, so fewer of them take as long. */
const WARM_UP_SHARE = 0.1
const LONE_WARM_UP_SHARE = 0.02
/** Linux counts CPU time in steps of 10 ms for each of Postgres's processes. */
const TIMES_LONGER = 3

const NAMES = { postgres: 'Postgres', sqlite: 'SQLite' }

/** What a first request costs where it writes a row, with the record and without: a table for each Node. */
export async function databaseTables(
  store: DatabaseName,
  nodes: readonly MeasuredNode[],
  ground: Ground,
  seconds: number,
): Promise<readonly Table[]> {
  const variants = DATABASE_VARIANTS.filter((variant) => variant.store === store)
  const measure = (connections: number, warmUpShare: number) => {
    const warmUpRequests = Math.ceil(ground.warmUpRequests * warmUpShare)
    const plans = variants.map(({ name }) => ({
      name,
      variant: name,
      phase: 'first' as const,
      seconds: TIMES_LONGER * seconds,
      connections,
    }))
    return measureAfresh(`${store}, ${connections} at a time`, plans, nodes, { ...ground, warmUpRequests })
  }
  const [many, lone] = [await measure(CONNECTIONS, WARM_UP_SHARE), await measure(1, LONE_WARM_UP_SHARE)]
  return nodes.map((node) => tableOf(store, node, variants, many.get(node) as Of, lone.get(node) as Of))
}

type Of = ReadonlyMap<string, Figures>

function tableOf(
  store: DatabaseName,
  { version }: MeasuredNode,
  variants: readonly Variant[],
  many: Of,
  lone: Of,
): Table {
  const [plain = ''] = variants.map(({ name }) => name)
  return {
    title: `First execution, in ${NAMES[store]}, Node ${version}`,
    columns: [
      ...['', 'server µs', '× unprotected', '× by hand'],
      ...(store === 'postgres' ? ['Postgres µs', '× unprotected', '× by hand'] : []),
      ...[`p50 ms of ${CONNECTIONS}`, '× by hand', 'p50 ms of one', '× by hand', ''],
    ],
    rows: variants.map(({ label, name, floor }) => {
      const against = (of: Of, figure: keyof Omit<Figures, 'mistakes'>, other: string | undefined) =>
        other === undefined || other === name
          ? ''
          : ratioCell(ratioOf(valuesOf(of, name, figure), valuesOf(of, other, figure)))
      const seen = (of: Of, figure: keyof Omit<Figures, 'mistakes'>, digits: number) =>
        spreadCell(spreadOf(valuesOf(of, name, figure)), digits)
      const cpu = (figure: 'cpuMicros' | 'databaseMicros') => [
        seen(many, figure, 0),
        against(many, figure, plain),
        against(many, figure, floor),
      ]
      const mistakes = (many.get(name)?.mistakes ?? 0) + (lone.get(name)?.mistakes ?? 0)
      return [
        ...[label, ...cpu('cpuMicros'), ...(store === 'postgres' ? cpu('databaseMicros') : [])],
        ...[seen(many, 'p50Ms', 1), against(many, 'p50Ms', floor)],
        ...[seen(lone, 'p50Ms', 2), against(lone, 'p50Ms', floor)],
        mistakes === 0 ? '' : `${mistakes} wrong answers`,
      ]
    }),
    notes: NOTES[store],
  }
}

function valuesOf(of: Of, name: string, figure: keyof Omit<Figures, 'mistakes'>): readonly number[] {
  return (of.get(name) as Figures)[figure]
}

function ratioCell(ratio: Spread): string {
  return spreadCell(ratio, 2)
}

const ALL = [
  'Each request inserts a row in a transaction. By hand: `INSERT … ON CONFLICT DO NOTHING` of the key, and an `UPDATE` with the answer, ' +
    'in that transaction or before and after it. They protect from a late retry alone.',
  'CPU (user and system) by request; p50 of the client, with so many connections; median of the rounds (least–most), ratios within a round.',
]

const NOTES = {
  postgres: [
    ...ALL,
    'Postgres: the CPU time of all its processes. It syncs its log (fsync); ten connections for transactions, four for what protects them.',
  ],
  sqlite: [
    ...ALL,
    'better-sqlite3, WAL, synchronous = FULL: its work is the server’s, and stops it while the disk syncs.',
  ],
}
