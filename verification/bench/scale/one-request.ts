import type { Store } from '../../../src/core/index.js'
import { quantile } from '../statistics.js'
import type { Pages } from './rows.js'

const REQUESTS = 15

/**
 * The median of some requests: now and then one splits a page, or the database does work of its own. `count`: pages so far. `prepare`:
 * before each command.
 */
export async function countPages(
  store: Store,
  count: () => number | Promise<number>,
  prepare = () => {},
): Promise<Pages> {
  const during = async (command: () => unknown) => {
    prepare()
    const before = await count()
    await command()
    return (await count()) - before
  }
  const nothing: number[] = []
  const first: number[] = []
  const replay: number[] = []
  for (let i = 0; i < REQUESTS; i++) {
    const { begin, complete } = commandsOf(store, `${i}`.repeat(8))
    nothing.push(await during(() => {}))
    first.push((await during(begin)) + (await during(complete)))
    replay.push(await during(begin))
  }
  const counting = medianOf(nothing)
  return { first: medianOf(first) - 2 * counting, replay: medianOf(replay) - counting }
}

function commandsOf(store: Store, name: string) {
  const owned = { token: 'token', scope: 'acme', fingerprint: 'v1.fingerprint', retentionMs: 86_400_000 }
  const answer = { status: 201, statusMessage: '', headers: [], body: Buffer.from('{"id":1}') }
  return {
    begin: () => store.begin(name, { ...owned, leaseMs: 30_000, unknownOutcome: 'rerun' }),
    complete: () => store.complete(name, { ...owned, attempt: 1, uncertain: false, answer }),
  }
}

function medianOf(values: readonly number[]): number {
  return quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  )
}
