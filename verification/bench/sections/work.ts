import { ANSWER_BYTES } from '../payout.js'
import { probeOf } from '../probe.js'
import { PROMISES } from '../promises.js'
import { countRoundTrips, type RoundTrips } from '../round-trips.js'
import type { Ground } from '../rounds.js'
import type { Services } from '../services.js'
import type { Table } from '../table.js'
import { VARIANTS } from '../variants.js'

/** Which promises each variant keeps; and of those that it breaks, what is to be said of it. */
export interface WorkDone {
  readonly table: Table
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
  for (const variant of VARIANTS) {
    if (variant.kind === 'bare') continue
    const service = await services.of(variant.name)
    const cells: string[] = []
    for (const promised of PROMISES) {
      ground.tell(`work: ${variant.name}, ${promised.title}`)
      await ground.redis.flushall()
      await service.call('reset', { phase: 'first', answerBytes: ANSWER_BYTES })
      const kept = await promised.holds(probeOf(service, redisSignal)).catch(() => false)
      cells.push(kept === null ? '–' : kept ? 'yes' : 'NO')
      if (kept === false && variant.kind !== 'floor') {
        failings.set(variant.name, [...(failings.get(variant.name) ?? []), promised.failing])
      }
    }
    if (variant.store === 'redis') roundTrips.set(variant.name, await countRoundTrips(service, ground.redis))
    rows.push([variant.label, ...cells, roundTripsCell(roundTrips.get(variant.name))])
  }
  return {
    failings,
    roundTrips,
    table: {
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
    },
  }
}

function roundTripsCell(counted: RoundTrips | undefined): string {
  if (counted === undefined) return '–'
  const { first, replay, refusal, failure } = counted
  return `${first}, ${replay}, ${refusal}, ${failure}`
}
