import { inspect } from 'node:util'
import type { Event } from '../../../test/support/histories.js'

/** What happened to one key, with durations in units, and where the replies went apart. */
export function named(past: readonly Event[], key: string, unitMs: number, due: unknown, seen: unknown): string {
  const steps: string[] = []
  let passed = 0
  for (const event of past) {
    if (event.type === 'advance') passed += event.ms / unitMs
    else if (event.key === key) {
      if (passed > 0) steps.push(`${passed} units pass`)
      steps.push(stepOf(event, unitMs))
      passed = 0
    }
  }
  return `${steps.join('; ')} => due ${shown(due)}, seen ${shown(seen)} (a unit is ${unitMs} ms)`
}

function stepOf(event: Exclude<Event, { type: 'advance' }>, unitMs: number): string {
  const terms = event.type === 'begin' ? event.claim : event.own
  const inUnits = Object.entries(terms).map(([name, value]) =>
    name.endsWith('Ms') ? `${name.slice(0, -2)} ${Number(value) / unitMs}` : `${name} ${shown(value)}`,
  )
  return `${event.type}(${inUnits.join(', ')})`
}

function shown(value: unknown): string {
  if (value instanceof Error) return String(value)
  return typeof value === 'string' ? value : inspect(value, { depth: 5, breakLength: Number.POSITIVE_INFINITY })
}
