import { ANSWER_BYTES } from '../payout.js'
import { probeOf } from '../probe.js'
import { PROMISES } from '../promises.js'
import { countRoundTrips, type RoundTrips } from '../round-trips.js'
import type { Ground } from '../rounds.js'
import type { Services } from '../services.js'
import { probeStoppedOwners } from '../stopped-owners.js'
import type { Table } from '../table.js'
import { VARIANTS, type Variant } from '../variants.js'

/** Which promises each variant keeps; and of those that it breaks, what is to be said of it. */
export interface WorkDone {
  readonly tables: readonly Table[]
  readonly failings: ReadonlyMap<string, readonly string[]>
  readonly roundTrips: ReadonlyMap<string, RoundTrips>
}

/** Asks each variant for the work that is compared: a variant that does less of it is not the same thing for less. */
export async function probeWork(
  services: Services,
  ground: Ground,
  redisSignal: (signal: NodeJS.Signals) => void,
): Promise<WorkDone> {
  const failings = new Map<string, string[]>()
  const roundTrips = new Map<string, RoundTrips>()
  const rows: string[][] = []
  const protecting = VARIANTS.filter(({ kind }) => kind !== 'bare')
  ground.tell('work: owners that stand still')
  await ground.redis.flushall()
  const inRedis = protecting.filter(({ store }) => store === 'redis')
  const stoppedOwners = await probeStoppedOwners(inRedis, ground.servers)
  for (const variant of protecting) {
    const service = await services.of(variant.name)
    const cells: string[] = []
    for (const promised of PROMISES) {
      ground.tell(`work: ${variant.name}, ${promised.title}`)
      await ground.redis.flushall()
      await service.call('reset', { phase: 'first', answerBytes: ANSWER_BYTES })
      const kept = await promised
        .holds(probeOf(service, stoppedOwners.get(variant.name), redisSignal))
        .catch(() => false)
      cells.push(kept === null ? '–' : kept ? 'yes' : 'NO')
      if (kept === false && variant.kind !== 'floor') {
        failings.set(variant.name, [...(failings.get(variant.name) ?? []), promised.failing])
      }
    }
    if (variant.store === 'redis') roundTrips.set(variant.name, await countRoundTrips(service, ground.redis))
    rows.push([variant.label, ...cells, roundTripsCell(roundTrips.get(variant.name))])
  }
  const table = {
    title: 'The work that is done',
    columns: ['', ...PROMISES.map(({ title }) => title), 'Redis commands: first, replay, refusal, failure'],
    rows,
    notes: [
      'Each on its recommended set-up; what it can do with code of one’s own does not count.',
      '@node-idempotency/core and @aws-lambda-powertools/idempotency have no Express binding that could be installed: ' +
        'ours for them stores the answer, then sends it.',
      '@aws-lambda-powertools/idempotency has no store in memory. Its check of the body is off, since with it the cache ' +
        'layer of this version refuses each replay.',
    ],
  }
  return { failings, roundTrips, tables: [table, failingsTable(protecting, failings)] }
}

function failingsTable(variants: readonly Variant[], failings: WorkDone['failings']): Table {
  const rows = variants
    .filter(({ kind }) => kind !== 'floor')
    .map(({ name, label }) => [label, failings.get(name)?.join(', ') ?? 'nothing that was tried'])
  return { title: 'What each gets wrong', columns: ['', ''], rows, notes: [] }
}

function roundTripsCell(counted: RoundTrips | undefined): string {
  if (counted === undefined) return '–'
  const { first, replay, refusal, failure } = counted
  return `${first}, ${replay}, ${refusal}, ${failure}`
}
