import { earlierIoredis, earlierLabel, earlierMemory } from './earlier-version.js'
import { peerVersion } from './peer-packages.js'
import type { Open } from './protection.js'
import { bare, bareBuffer } from './protections/bare.js'
import { expressIdempotencyMemory, expressIdempotencyRedis } from './protections/express-idempotency.js'
import { floorMemory } from './protections/floor-memory.js'
import { floorIoredis, floorIoredisAutoPipelining, floorNodeRedis } from './protections/floor-redis.js'
import { floorMySqlInside, inTransactionMySql, leasedMySql, plainMySql } from './protections/mysql.js'
import {
  bareNest,
  nodeIdempotencyNestMemory,
  nodeIdempotencyNestRedis,
  oursNestMemory,
  oursNestRedis,
} from './protections/nest.js'
import { nodeIdempotencyMemory, nodeIdempotencyRedis } from './protections/node-idempotency.js'
import {
  oursIoredis,
  oursIoredisAutoPipelining,
  oursMemory,
  oursNodeRedis,
  oursRedisCluster,
} from './protections/ours.js'
import {
  floorPostgresAround,
  floorPostgresInside,
  inTransactionPostgres,
  leasedPostgres,
  namedPostgres,
  oursPostgresAround,
  plainPostgres,
} from './protections/postgres.js'
import { powertoolsRedis } from './protections/powertools.js'
import {
  floorSqliteAround,
  floorSqliteInside,
  oursSqliteAround,
  oursSqliteInside,
  plainSqlite,
} from './protections/sqlite.js'

/** Where a payout is a row, and its record may be completed in the same transaction. */
export type DatabaseName = 'postgres' | 'mysql' | 'sqlite'

/** One way to run the service. */
export interface Variant {
  readonly name: string
  readonly label: string
  readonly kind: 'bare' | 'floor' | 'ours' | 'peer'
  readonly store: 'none' | 'memory' | 'redis' | DatabaseName
  /** The variant that does the least with the same store and client. */
  readonly floor?: string | undefined
  /** The variant of its framework without protection; absent: that of Express. */
  readonly bare?: string
  /** Measured by `npm run bench -- others` alone. */
  readonly isRare?: true
  readonly open: Open
}

const FLOORS: readonly Variant[] = [
  { name: 'bare', label: 'Express 5, unprotected', kind: 'bare', store: 'none', open: bare },
  { name: 'floor-memory', label: 'floor: a Map', kind: 'floor', store: 'memory', open: floorMemory },
  { name: 'floor-ioredis', label: 'floor: ioredis', kind: 'floor', store: 'redis', open: floorIoredis },
  {
    name: 'floor-ioredis-auto',
    label: 'floor: ioredis, auto-pipelining',
    kind: 'floor',
    store: 'redis',
    isRare: true,
    open: floorIoredisAutoPipelining,
  },
  { name: 'floor-node-redis', label: 'floor: node-redis', kind: 'floor', store: 'redis', open: floorNodeRedis },
]

const OURS: readonly Variant[] = [
  ours('ours-memory', 'memory', 'memory', 'floor-memory', oursMemory),
  ours('ours-ioredis', 'ioredis', 'redis', 'floor-ioredis', oursIoredis),
  {
    ...ours('ours-ioredis-auto', 'ioredis, auto-pipelining', 'redis', 'floor-ioredis-auto', oursIoredisAutoPipelining),
    isRare: true,
  },
  ours('ours-node-redis', 'node-redis', 'redis', 'floor-node-redis', oursNodeRedis),
]

/**
 * On 2026-11-29 the registry that we reach had no `@node-idempotency/express`, `hono-idempotency` or `@nestarc/idempotency` (E404), nor
 * `@idempot/core` 1.3.0, which idempot-js's `@idempot/redis-store` 1.0.8 depends on. Another registry may have them.
 */
const PEERS: readonly Variant[] = [
  { ...peer('express-idempotency', 'memory', 'floor-memory', expressIdempotencyMemory), isRare: true },
  peer('@node-idempotency/core', 'memory', 'floor-memory', nodeIdempotencyMemory),
  { ...peer('express-idempotency', 'redis', 'floor-node-redis', expressIdempotencyRedis), isRare: true },
  { ...peer('@node-idempotency/core', 'redis', 'floor-node-redis', nodeIdempotencyRedis), isRare: true },
  { ...peer('@aws-lambda-powertools/idempotency', 'redis', 'floor-node-redis', powertoolsRedis), isRare: true },
]

/** Without floors, since a handler by hand is on Nest what it is on Express. */
const ON_NEST: readonly Variant[] = [
  { name: 'bare-nest', label: 'Nest 10, unprotected', kind: 'bare', store: 'none', open: bareNest } as const,
  ours('ours-nest-memory', 'memory, on Nest', 'memory', undefined, oursNestMemory),
  ours('ours-nest-redis', 'node-redis, on Nest', 'redis', undefined, oursNestRedis),
  peer('@node-idempotency/nestjs', 'memory', undefined, nodeIdempotencyNestMemory),
  peer('@node-idempotency/nestjs', 'redis', undefined, nodeIdempotencyNestRedis),
].map((variant) => ({ ...variant, bare: 'bare-nest', isRare: true }))

const EARLIER: readonly Variant[] =
  earlierLabel === undefined
    ? []
    : [
        { ...ours('earlier-memory', '', 'memory', 'floor-memory', earlierMemory), label: `${earlierLabel}: memory` },
        { ...ours('earlier-ioredis', '', 'redis', 'floor-ioredis', earlierIoredis), label: `${earlierLabel}: ioredis` },
      ]

export const VARIANTS: readonly Variant[] = [...FLOORS, ...OURS, ...EARLIER, ...PEERS, ...ON_NEST].sort(
  (a, b) => storeOrder(a) - storeOrder(b),
)

/** Compared within their database alone. */
export const DATABASE_VARIANTS: readonly Variant[] = [
  ...inDatabase('postgres', {
    ...{ plain: plainPostgres, floorInside: floorPostgresInside, leased: leasedPostgres },
    ...{ looked: inTransactionPostgres, named: namedPostgres },
    ...{ floorAround: floorPostgresAround, oursAround: oursPostgresAround },
  }),
  ...inDatabase('mysql', {
    ...{ plain: plainMySql, floorInside: floorMySqlInside, leased: leasedMySql, looked: inTransactionMySql },
  }),
  ...inDatabase('sqlite', {
    ...{ plain: plainSqlite, floorInside: floorSqliteInside, leased: oursSqliteInside },
    ...{ floorAround: floorSqliteAround, oursAround: oursSqliteAround },
  }),
]

/** Measured by `npm run bench:scale` alone. */
const SCALE_VARIANTS: readonly Variant[] = [
  { name: 'bare-buffer', label: 'Express 5, sending a buffer', kind: 'bare', store: 'none', open: bareBuffer },
  ours('ours-redis-cluster', 'ioredis, cluster', 'redis', 'floor-ioredis', oursRedisCluster),
]

export function variantOf(name: string): Variant {
  const variant = [...VARIANTS, ...DATABASE_VARIANTS, ...SCALE_VARIANTS].find((one) => one.name === name)
  if (variant === undefined) throw new Error(`No variant of this name: ${name}`)
  return variant
}

function ours(name: string, client: string, store: Variant['store'], floor: string | undefined, open: Open): Variant {
  return { name, label: `once-per-key: ${client}`, kind: 'ours', store, floor, open }
}

/** How a payout's row is written; what a database has not is absent. */
interface InDatabase {
  readonly plain: Open
  readonly floorInside: Open
  readonly leased: Open
  readonly looked?: Open
  readonly named?: Open
  readonly floorAround?: Open
  readonly oursAround?: Open
}

function inDatabase(store: DatabaseName, opens: InDatabase): Variant[] {
  const of = (name: string) => `${name}-${store}`
  const [inside, around] = [of('floor-inside'), of('floor-around')]
  const all: (Omit<Variant, 'store' | 'open'> & { readonly open: Open | undefined })[] = [
    { name: of('plain'), label: 'a transaction, unprotected', kind: 'bare', open: opens.plain },
    { name: inside, label: 'by hand, in it', kind: 'floor', open: opens.floorInside },
    { name: of('leased'), label: 'leased: `store.transaction`', kind: 'ours', floor: inside, open: opens.leased },
    { name: of('looked'), label: 'in-transaction', kind: 'ours', floor: inside, open: opens.looked },
    { name: of('named'), label: 'in-transaction, named', kind: 'ours', floor: inside, open: opens.named },
    { name: around, label: 'by hand, around it', kind: 'floor', open: opens.floorAround },
    { name: of('ours-around'), label: 'the store, around it', kind: 'ours', floor: around, open: opens.oursAround },
  ]
  return all.flatMap(({ open, ...variant }) => (open === undefined ? [] : [{ ...variant, store, open }]))
}

/** Peers bring node-redis, or are recommended with it. */
function peer(packageName: string, store: Variant['store'], floor: string | undefined, open: Open): Variant {
  const where = store === 'redis' ? 'node-redis' : 'memory'
  const label = `${packageName} ${peerVersion(packageName)}: ${where}`
  return { name: `${packageName}-${store}`, label, kind: 'peer', store, floor, open }
}

function storeOrder({ store }: Variant): number {
  return ['none', 'memory', 'redis'].indexOf(store)
}
