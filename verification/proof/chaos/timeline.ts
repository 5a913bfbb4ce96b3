import type { KeyHistory } from './history.js'

const LONGEST = 80

/** What happened to a key, one line each, in the order of time. */
export function timelineOf(history: KeyHistory, startedAt: number): string {
  const { commands, runs, effects, steps, told, asked } = history
  const lines: [at: number, text: string][] = []
  for (const { command: name, step, token, process, sentAt, repliedAt, reply, uncertain } of commands) {
    const owner = token.slice(0, 4)
    const command = step === undefined ? name : `${name} (${step.label} ${step.state})`
    lines.push([sentAt, `service ${process} sends ${command} of ${owner}${uncertain ? ' (uncertain)' : ''}`])
    if (reply !== null) {
      const { outcome, attempt, previousOutcome, met } = reply
      const facts = [attempt, previousOutcome, met].filter((fact) => fact !== undefined)
      lines.push([repliedAt, `service ${process} is told ${outcome} for ${command} of ${owner} (${facts.join(', ')})`])
    }
  }
  for (const { at, process, attempt, previousOutcome, reference } of runs) {
    lines.push([at, `service ${process} runs attempt ${attempt} of "${reference}", told ${previousOutcome}`])
  }
  for (const { at, process, attempt, entry } of effects) {
    lines.push([at, `service ${process}: effect of attempt ${attempt}: ${entry ?? 'perhaps'}`])
  }
  for (const step of steps) {
    const what = step.what === 'step called' ? `${step.what}, told ${step.told}` : step.what
    lines.push([step.at, `service ${step.process}: ${what}: ${step.id}, attempt ${step.attempt}`])
  }
  for (const { at, process, line } of told) lines.push([at, `service ${process} tells ${line.msg}`])
  for (const { sentAt, endedAt, place, payment, end, reply } of asked) {
    const what = reply && [reply.status, reply.code ?? reply.entry, reply.replayed && 'replayed'].filter(Boolean)
    lines.push([sentAt, `a client sends "${payment.reference}" to service ${place.process}`])
    lines.push([endedAt, `a client of service ${place.process}: ${end} ${what?.join(' ') ?? ''}`])
  }
  lines.sort(([a], [b]) => a - b)
  const shown = lines.slice(0, LONGEST).map(([at, text]) => `${(at - startedAt).toFixed(1).padStart(9)} ms  ${text}`)
  if (lines.length > LONGEST) shown.push(`… and ${lines.length - LONGEST} more`)
  return shown.join('\n')
}
