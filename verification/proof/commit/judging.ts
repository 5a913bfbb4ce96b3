import type { Told } from './clients.js'
import type { Row } from './dialect.js'
import { count } from './faults.js'
import type { Stage } from './scenery.js'

export const SEALED_EVERY = 3
export const TAKEN_OVER = 'takeovers'
export const SEALED = 'sealed answers'
export const STEPS = [
  'keys that were reserved',
  'keys that called',
  'keys that called again',
  'steps in a transaction',
] as const

/** What a service has written down, by key: an effect has the result of its step, `called`. */
interface Written {
  readonly id: string
  readonly attempt: number
  readonly called: string | null
  /** A step's: what it was told. */
  readonly told: string
  /** Of a step in a transaction. */
  readonly code: string
}

/** What the clients of each key were told, against what the database has. Returns how many keys have an effect. */
export async function judgeKeys(stage: Stage, toldOf: ReadonlyMap<string, Told>): Promise<number> {
  const { query, findings, tried, dialect, run } = stage
  const read = async (table: string) => groupByName<Written>(await query(`SELECT * FROM ${table}`))
  const effects = await read('effects')
  const [reservations, calls, inside] = [await read('reservations'), await read('calls'), await read('inside')]
  const records = groupByName(await query(dialect.recordsSql))
  const repeated = [...calls.values()].filter((made) => made.length > 1).length
  const steps = [reservations.size, calls.size, repeated, inside.size]
  for (const [i, name] of STEPS.entries()) tried[name] = steps[i] as number

  for (const [key, told] of toldOf) {
    const { ids, unanswered } = told
    const found = effects.get(key) ?? []
    const made = calls.get(key) ?? []
    const reserved = reservations.get(key)?.length ?? 1
    const [record] = records.get(key) ?? []
    const story = () => `${run}, ${key}: clients saw ${[...ids]}; the database has ${JSON.stringify(found)}`
    findings.expect('S5', found.length <= 1 && (ids.size === 0 || found.length === 1), story)
    findings.expect('S2', ids.size <= 1, story)
    const areThere = [...ids].every((id) => found.some((effect) => effect.id === id))
    findings.expect('S3', areThere, story)
    const areOwn = found.every(({ attempt }) => attempt === record?.attempt)
    findings.expect('S6', areOwn, () => `${story()}; its record is of attempt ${record?.attempt}`)
    findings.expect('S14', reserved === 1, () => `${story()}; it was reserved more than once`)
    const haveResult = found.every((effect) => isResultOf(effect, made))
    const isOnceNew = made.filter(({ told }) => told === 'none').length <= 1
    findings.expect('S14', haveResult && isOnceNew, () => `${story()}; its calls were ${JSON.stringify(made)}`)
    for (const { code } of inside.get(key) ?? []) {
      findings.expect(
        'S14',
        code === 'step_in_transaction',
        () => `${run}, ${key}: a step in a transaction got '${code}'`,
      )
    }
    findings.expect('L1', unanswered === 0, () => `${run}, ${key}: ${unanswered} of its clients got no answer`)
    if (isPlaced(key) && found.some(({ attempt }) => attempt > 1)) count(tried, TAKEN_OVER)
    if (isPlaced(key) && isSealed(key) && record?.state === 'completed') {
      count(tried, SEALED)
      const isHidden = record.status === 0 && found.every(({ id }) => !record.body?.includes(id))
      findings.expect('S13', isHidden, () => `${run}, ${key}: the database shows its answer`)
    }
  }
  return effects.size
}

/** Not of a scene. */
function isPlaced(key: string): boolean {
  return key.startsWith('key-')
}

function isSealed(key: string): boolean {
  return Number(/\d+$/.exec(key)?.[0]) % SEALED_EVERY === 0
}

/** An effect has the result of the last call before it: once that was recorded, nobody has called again. */
function isResultOf({ attempt, called }: Written, calls: readonly Written[]): boolean {
  if (called === null) return true
  const made = calls.find(({ id }) => id === called)
  return made !== undefined && calls.every((other) => other.attempt <= made.attempt || other.attempt > attempt)
}

function groupByName<Value = Row>(rows: readonly Row[]): Map<string, Value[]> {
  const values = new Map<string, Value[]>()
  for (const row of rows) values.set(row.name, [...(values.get(row.name) ?? []), row])
  return values
}
