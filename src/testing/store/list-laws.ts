import type { Bench } from '../bench.js'
import { LONG_MS } from '../claimant.js'
import type { Law } from '../law.js'
import { promised } from '../seen.js'
import { repeatEnd, SITUATIONS, type SituationName } from '../situations.js'
import { UNKNOWN } from './operator-laws.js'

/** The retention of the records by default. */
const RETENTION_MS = 2 * LONG_MS

const LIST_CELLS = Object.entries(UNKNOWN).map(([situation, isUnknown]): Law => {
  const name = `list (${situation}): ${isUnknown ? 'shows the record' : 'skips it'}`
  return listable(name, async (bench) => {
    const met = await SITUATIONS[situation as SituationName](bench)
    const found = await bench.list()
    const shown = found.map(({ record }) => record)
    promised(shown, isUnknown ? [met.record] : [], `${name}, since its outcome is ${isUnknown ? 'un' : ''}known.`)
    promised(await bench.inspect(), met.record, `${name}, and changes nothing.`)
    if (met.record !== null) promised(await repeatEnd(met), { ok: true }, `${name}, and the last owner still owns it.`)
  })
})

const LAWS: readonly Law[] = [
  listable('list: a walk lists all of them, and ends', async (bench) => {
    const keys = Array.from({ length: 50 }, (_, i) => `${bench.key}:${i}`)
    await Promise.all(keys.map((key) => lost(bench, key)))
    const found = (await bench.list(keys)).map(({ key }) => key)
    promised([...new Set(found)].toSorted(), keys.toSorted(), 'A record that exists during the whole walk is listed.')
  }),

  listable('list: shows the key unchanged', async (bench) => {
    const keys = ['a%3Ab:c', 'webhook:a:b', "it's*[a]?", '%C3%A9:%20'].map((end) => `${bench.key}:${end}`)
    await Promise.all(keys.map((key) => lost(bench, key)))
    const found = (await bench.list(keys)).map(({ key }) => key)
    promised([...new Set(found)].toSorted(), keys.toSorted(), 'A storage key is opaque.')
  }),

  listable('list: shows the rest of the retention', async (bench) => {
    await lost(bench, bench.key)
    const [found] = await bench.list()
    const leftMs = found?.retentionRemainingMs ?? 0
    const isSo = leftMs > RETENTION_MS / 2 && leftMs <= RETENTION_MS
    promised({ isSo }, { isSo: true }, 'The record was just written, so nearly all of its retention is left.')
  }),

  listable('list: skips records that were resolved or claimed again', async (bench) => {
    const keys = ['resolved', 'claimed'].map((end) => `${bench.key}:${end}`) as [string, string]
    await Promise.all(keys.map((key) => lost(bench, key)))
    await bench.resolve(1, null, { key: keys[0] })
    await bench.claimant({ key: keys[1] }).claims()
    promised(await bench.list(keys), [], 'Their outcome is known, or an attempt is running.')
  }),

  listable('list: skips expired records', (bench) =>
    bench.before(async (ms, early, late) => {
      const key = `${bench.key}:${ms}`
      await bench.claimant({ key }).claims({ leaseMs: 1, retentionMs: ms })
      await early()
      const found = await bench.list([key])
      return async () => {
        promised(found.length > 0, true, 'Until its retention ends, it is listed.')
        await late()
        promised(await bench.list([key]), [], 'After its retention there is no record.')
      }
    }),
  ),
]

export const listLaws: readonly Law[] = [...LIST_CELLS, ...LAWS]

function listable(name: string, check: Law['check']): Law {
  return { name, holds: 'listable', check }
}

/** A first attempt that failed, and may have had its effect. */
async function lost(bench: Bench, key: string): Promise<void> {
  const owner = await bench.claimant({ key }).claims()
  promised(await owner.release({ uncertain: true }), { ok: true }, 'The owner can release.')
}
