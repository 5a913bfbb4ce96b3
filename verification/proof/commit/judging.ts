import type { Findings } from '../layer.js'
import type { Told } from './clients.js'

/** As the database has it. */
export interface Effect {
  readonly id: string
  readonly attempt: number
}

interface Judging {
  readonly told: ReadonlyMap<string, Told>
  readonly effects: ReadonlyMap<string, readonly Effect[]>
  /** Which attempt owns the record of each key. */
  readonly attempts: ReadonlyMap<string, number>
  /** How often the step of a key that reserves was committed. */
  readonly reservations: ReadonlyMap<string, number>
  readonly findings: Findings
  readonly seed: number
}

/** What the clients of each key were told, against what the database has. */
export function judgeKeys({ told, effects, attempts, reservations, findings, seed }: Judging): void {
  for (const [key, { ids, unanswered }] of told) {
    const found = effects.get(key) ?? []
    const story = () => `seed ${seed}, ${key}: clients saw ${[...ids]}; the database has ${JSON.stringify(found)}`
    findings.expect('S5', found.length <= 1 && (ids.size === 0 || found.length === 1), story)
    findings.expect('S2', ids.size <= 1, story)
    findings.expect(
      'S3',
      [...ids].every((id) => found.some((effect) => effect.id === id)),
      story,
    )
    findings.expect(
      'S6',
      found.every(({ attempt }) => attempt === attempts.get(key)),
      () => `${story()}; its record is of attempt ${attempts.get(key)}`,
    )
    findings.expect('S14', (reservations.get(key) ?? 1) === 1, () => `${story()}; it was reserved more than once`)
    findings.expect('L1', unanswered === 0, () => `seed ${seed}, ${key}: ${unanswered} of its clients got no answer`)
  }
}

export function byKey<Value>(rows: readonly ({ readonly key: string } & Value)[]): Map<string, Value[]> {
  const values = new Map<string, Value[]>()
  for (const { key, ...value } of rows) values.set(key, [...(values.get(key) ?? []), value as Value])
  return values
}
