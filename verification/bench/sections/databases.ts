import type { PostgresServer } from '../../../test/support/postgres-server.js'
import { transactionCost, WAYS_TO_PAY } from '../../cost/transaction-costs.js'
import { measureAfresh } from '../afresh.js'
import type { MeasuredNode } from '../nodes.js'
import type { Phase } from '../protection.js'
import { CONNECTIONS, type Figures, type Ground } from '../rounds.js'
import { ratioOf, type Spread, spreadOf } from '../statistics.js'
import { spreadCell, type Table } from '../table.js'
import { DATABASE_VARIANTS, type DatabaseName, type Variant } from '../variants.js'

/** A transaction costs more than a request in memory, so fewer of them take as long. */
const WARM_UP_SHARE = 0.1
const LONE_WARM_UP_SHARE = 0.02
/** Linux counts CPU time in steps of 10 ms for each of Postgres's processes. */
const TIMES_LONGER = 3

const NAMES = { postgres: 'Postgres', mysql: 'MariaDB', sqlite: 'SQLite' }

/** What a request costs where it writes a row, with the record and without: tables for each Node. */
export async function databaseTables(
  store: DatabaseName,
  nodes: readonly MeasuredNode[],
  ground: Ground,
  seconds: number,
): Promise<readonly Table[]> {
  const all = DATABASE_VARIANTS.filter((variant) => variant.store === store)
  // Unprotected, nothing is replayed.
  const replaying = all.filter(({ kind }) => kind !== 'bare')
  const from = performance.now()
  /** `part` of three: the time is shared. */
  const measure = (part: number, variants: readonly Variant[], phase: Phase, connections: number, share: number) => {
    const warmUpRequests = Math.ceil(ground.warmUpRequests * share)
    const until = ground.until === undefined ? {} : { until: from + ((ground.until - from) * part) / 3 }
    const terms = { phase, seconds: TIMES_LONGER * seconds, connections }
    const plans = variants.map(({ name }) => ({ name, variant: name, ...terms }))
    const title = `${store}, ${phase}, ${connections} at a time`
    return measureAfresh(title, plans, nodes, { ...ground, ...until, warmUpRequests })
  }
  const many = await measure(1, all, 'first', CONNECTIONS, WARM_UP_SHARE)
  const lone = await measure(2, all, 'first', 1, LONE_WARM_UP_SHARE)
  const replays = await measure(3, replaying, 'replay', CONNECTIONS, WARM_UP_SHARE)
  return nodes.flatMap((node) => [
    tableOf('First execution', store, node, all, many.get(node) as Of, lone.get(node)),
    tableOf('Replay', store, node, replaying, replays.get(node) as Of),
  ])
}

type Of = ReadonlyMap<string, Figures>

function tableOf(
  what: 'First execution' | 'Replay',
  store: DatabaseName,
  { version }: MeasuredNode,
  variants: readonly Variant[],
  many: Of,
  lone?: Of,
): Table {
  const plain = variants.find(({ kind }) => kind === 'bare')?.name
  const isServer = store !== 'sqlite'
  const against = (of: Of, figure: Figure, name: string, other: string | undefined) =>
    other === undefined || other === name
      ? ''
      : ratioCell(ratioOf(valuesOf(of, name, figure), valuesOf(of, other, figure)))
  const seen = (of: Of, figure: Figure, name: string, digits: number) =>
    spreadCell(spreadOf(valuesOf(of, name, figure)), digits)
  const ratios = plain === undefined ? ['× by hand'] : ['× unprotected', '× by hand']
  const rounds = many.values().next().value?.cpuMicros.length ?? 0
  return {
    title: `${what}, in ${NAMES[store]}, Node ${version}`,
    columns: [
      ...['', 'server µs', ...ratios],
      ...(isServer ? [`${NAMES[store]} µs`, ...ratios] : []),
      ...[`p50 ms of ${CONNECTIONS}`, '× by hand'],
      ...(lone === undefined ? [] : ['p50 ms of one', '× by hand']),
      '',
    ],
    rows: variants.map(({ label, name, floor }) => {
      const cpu = (figure: Figure) => [
        seen(many, figure, name, 0),
        ...(plain === undefined ? [] : [against(many, figure, name, plain)]),
        against(many, figure, name, floor),
      ]
      const waited = (of: Of, digits: number) => [seen(of, 'p50Ms', name, digits), against(of, 'p50Ms', name, floor)]
      const mistakes = (many.get(name)?.mistakes ?? 0) + (lone?.get(name)?.mistakes ?? 0)
      return [
        ...[label, ...cpu('cpuMicros'), ...(isServer ? cpu('databaseMicros') : [])],
        ...[...waited(many, 1), ...(lone === undefined ? [] : waited(lone, 2))],
        mistakes === 0 ? '' : `${mistakes} wrong answers`,
      ]
    }),
    notes: [...NOTES[store], `Rounds: ${rounds}.`],
  }
}

type Figure = keyof Omit<Figures, 'mistakes'>

function valuesOf(of: Of, name: string, figure: Figure): readonly number[] {
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
  mysql: [
    ...ALL,
    'MariaDB: the CPU time of its process. It syncs its log (innodb_flush_log_at_trx_commit = 1); connections as above.',
  ],
  sqlite: [
    ...ALL,
    'better-sqlite3, WAL, synchronous = FULL: its work is the server’s, and stops it while the disk syncs.',
  ],
}

/** What one request makes Postgres do, counted: for a sentence, not for a measurement. */
export async function transactionTable(server: PostgresServer, tell: Ground['tell']): Promise<Table> {
  const rows: string[][] = []
  let databases = 0
  for (const phase of ['first', 'replay'] as const) {
    for (const way of WAYS_TO_PAY) {
      if (phase === 'replay' && way === 'unprotected') continue
      tell(`postgres: counting ${way}, ${phase}`)
      const url = await server.createDatabase(`counted_${databases++}`)
      const { trips, flushes, inserted, updated, walBytes } = await transactionCost(url, way, phase)
      rows.push([`${way}, ${phase}`, ...[trips, flushes, inserted, updated, walBytes].map(String)])
    }
  }
  return {
    title: 'What one request makes Postgres do',
    columns: ['', 'trips', 'flushes', 'rows inserted', 'updated', 'bytes of WAL'],
    rows,
    notes: ['Rows of the record, beside that of the payment. Without HTTP, one at a time.'],
  }
}
