import { earlierIoredis, earlierLabel, earlierMemory } from './earlier-version.js'
import { peerVersion } from './peer-packages.js'
import type { Open } from './protection.js'
import { bare } from './protections/bare.js'
import { expressIdempotencyMemory, expressIdempotencyRedis } from './protections/express-idempotency.js'
import { floorMemory } from './protections/floor-memory.js'
import { floorIoredis, floorIoredisAutoPipelining, floorNodeRedis } from './protections/floor-redis.js'
import { nodeIdempotencyMemory, nodeIdempotencyRedis } from './protections/node-idempotency.js'
import { oursIoredis, oursIoredisAutoPipelining, oursMemory, oursNodeRedis } from './protections/ours.js'
import {
  floorPostgresAround,
  floorPostgresInside,
  oursPostgresAround,
  oursPostgresInside,
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
export type DatabaseName = 'postgres' | 'sqlite'

/** One way to run the service. */
export interface Variant {
  readonly name: string
  readonly label: string
  readonly kind: 'bare' | 'floor' | 'ours' | 'peer'
  readonly store: 'none' | 'memory' | 'redis' | DatabaseName
  /** The variant that does the least with the same store and client. */
  readonly floor?: string
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
    open: floorIoredisAutoPipelining,
  },
  { name: 'floor-node-redis', label: 'floor: node-redis', kind: 'floor', store: 'redis', open: floorNodeRedis },
]

const OURS: readonly Variant[] = [
  ours('ours-memory', 'memory', 'memory', 'floor-memory', oursMemory),
  ours('ours-ioredis', 'ioredis', 'redis', 'floor-ioredis', oursIoredis),
  ours('ours-ioredis-auto', 'ioredis, auto-pipelining', 'redis', 'floor-ioredis-auto', oursIoredisAutoPipelining),
  ours('ours-node-redis', 'node-redis', 'redis', 'floor-node-redis', oursNodeRedis),
]

const PEERS: readonly Variant[] = [
  peer('express-idempotency', 'memory', 'floor-memory', expressIdempotencyMemory),
  peer('@node-idempotency/core', 'memory', 'floor-memory', nodeIdempotencyMemory),
  peer('express-idempotency', 'redis', 'floor-node-redis', expressIdempotencyRedis),
  peer('@node-idempotency/core', 'redis', 'floor-node-redis', nodeIdempotencyRedis),
  peer('@aws-lambda-powertools/idempotency', 'redis', 'floor-node-redis', powertoolsRedis),
]

const EARLIER: readonly Variant[] =
  earlierLabel === undefined
    ? []
    : [
        { ...ours('earlier-memory', '', 'memory', 'floor-memory', earlierMemory), label: `${earlierLabel}: memory` },
        { ...ours('earlier-ioredis', '', 'redis', 'floor-ioredis', earlierIoredis), label: `${earlierLabel}: ioredis` },
      ]

export const VARIANTS: readonly Variant[] = [...FLOORS, ...OURS, ...EARLIER, ...PEERS].sort(
  (a, b) => storeOrder(a) - storeOrder(b),
)

/** Compared within their database alone. */
export const DATABASE_VARIANTS: readonly Variant[] = [
  ...inDatabase('postgres', {
    plain: plainPostgres,
    floorInside: floorPostgresInside,
    oursInside: oursPostgresInside,
    floorAround: floorPostgresAround,
    oursAround: oursPostgresAround,
  }),
  ...inDatabase('sqlite', {
    plain: plainSqlite,
    floorInside: floorSqliteInside,
    oursInside: oursSqliteInside,
    floorAround: floorSqliteAround,
    oursAround: oursSqliteAround,
  }),
]

export function variantOf(name: string): Variant {
  const variant = [...VARIANTS, ...DATABASE_VARIANTS].find((one) => one.name === name)
  if (variant === undefined) throw new Error(`No variant of this name: ${name}`)
  return variant
}

function ours(name: string, client: string, store: Variant['store'], floor: string, open: Open): Variant {
  return { name, label: `once-per-key: ${client}`, kind: 'ours', store, floor, open }
}

type InDatabase = Readonly<Record<'plain' | 'floorInside' | 'oursInside' | 'floorAround' | 'oursAround', Open>>

function inDatabase(store: DatabaseName, opens: InDatabase): Variant[] {
  const of = (name: string) => `${name}-${store}`
  const [inside, around] = [of('floor-inside'), of('floor-around')]
  return [
    { name: of('plain'), label: 'a transaction, unprotected', kind: 'bare', store, open: opens.plain },
    { name: inside, label: 'by hand, in it', kind: 'floor', store, open: opens.floorInside },
    { name: of('ours-inside'), label: 'store.transaction', kind: 'ours', store, floor: inside, open: opens.oursInside },
    { name: around, label: 'by hand, around it', kind: 'floor', store, open: opens.floorAround },
    { name: of('ours-around'), label: 'the store', kind: 'ours', store, floor: around, open: opens.oursAround },
  ]
}

/** Peers bring node-redis, or are recommended with it. */
function peer(packageName: string, store: Variant['store'], floor: string, open: Open): Variant {
  const where = store === 'redis' ? 'node-redis' : 'memory'
  const label = `${packageName} ${peerVersion(packageName)}: ${where}`
  return { name: `${packageName}-${store}`, label, kind: 'peer', store, floor, open }
}

function storeOrder({ store }: Variant): number {
  return ['none', 'memory', 'redis'].indexOf(store)
}
