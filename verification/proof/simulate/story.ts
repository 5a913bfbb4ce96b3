import { createHash } from 'node:crypto'
import type { Answer } from 'once-per-key/core'
import type { Arrival, Command, Observation, Request, Told } from './history.js'

const LAST_LINES = 60

/** What can be told of one (scope, key), in the order in which it happened. */
export function storyOf(history: readonly Observation[], about: Pick<Request, 'scope' | 'key'>): string {
  const lines = history.filter((observation) => concerns(observation, about)).map(lineOf)
  const left = lines.length - LAST_LINES
  return [...(left > 0 ? [`(${left} earlier lines)`] : []), ...lines.slice(-LAST_LINES)].join('\n  ')
}

/** One short text for the whole of a history: the same history has the same. Tokens, which are random, do not count. */
export function digestOf(history: readonly Observation[]): string {
  const digest = createHash('sha256')
  for (const observation of history) digest.update(`${lineOf(observation)}\n`)
  return digest.digest('hex')
}

function concerns(observation: Observation, { scope, key }: Pick<Request, 'scope' | 'key'>): boolean {
  const request = requestOf(observation)
  if (request !== null) return request.scope === scope && request.key === key
  switch (observation.type) {
    case 'lost':
      return observation.key === null || (observation.scope === scope && observation.key === key)
    case 'event': {
      const { event } = observation
      return 'key' in event && event.key === key && event.scope === scope
    }
    default:
      return true
  }
}

function requestOf(observation: Observation): Request | null {
  if ('request' in observation) return observation.request
  if ('command' in observation) return observation.command.request
  if ('arrival' in observation) return observation.arrival.command.request
  return 'run' in observation ? observation.run.request : null
}

function lineOf(observation: Observation): string {
  return `${observation.at} ms: ${wordsOf(observation)}`
}

function wordsOf(observation: Observation): string {
  switch (observation.type) {
    case 'asked': {
      const { id, instance, scope, key, content } = observation.request
      return `request ${id} asks instance ${instance} for ${scope}/${key} with body ${content}`
    }
    case 'left':
      return `the client of request ${observation.request.id} leaves`
    case 'sent':
      return `${nameOf(observation.command)} is sent`
    case 'arrived':
      return `${nameOf(observation.arrival.command)} arrives: ${replyOf(observation.arrival)}`
    case 'heard':
      return `${nameOf(observation.arrival.command)} is answered: ${replyOf(observation.arrival)}`
    case 'failed':
      return `${nameOf(observation.command)} fails ${observation.where}`
    case 'started': {
      const { id, request, attempt, previousOutcome } = observation.run
      return `run ${id} starts for request ${request.id}: attempt ${attempt}, told '${previousOutcome}'`
    }
    case 'affected':
      return `run ${observation.run.id} has, or may have, its effect`
    case 'step called': {
      const { label, told } = observation.call
      return `run ${observation.run.id} calls ${label}, told '${told}'`
    }
    case 'step ended': {
      const { label, end, isTakenBack } = observation.call
      return `run ${observation.run.id}: ${label} is ${end}${isTakenBack ? ', and taken back' : ''}`
    }
    case 'step got':
      return `run ${observation.run.id} gets ${observation.label} from run ${observation.from}`
    case 'ended': {
      const { id, end } = observation.run
      return `run ${id} ${end?.succeeded ? 'succeeds' : 'fails'} (${end?.answer?.status ?? 'without an answer'})`
    }
    case 'told':
      return `request ${observation.request.id} is told: ${toldOf(observation.told)}`
    case 'event': {
      const { type, ...rest } = observation.event
      return `instance ${observation.instance} reports ${type} ${detailsOf(rest)}`
    }
    case 'lost':
      return observation.key === null
        ? 'the store loses all records'
        : `the store loses the record of ${observation.scope}/${observation.key}`
    case 'faults ended':
      return 'nothing fails from here on'
    default:
      return `instance ${observation.instance} is ${observation.type}`
  }
}

function nameOf({ id, name, request, terms }: Command): string {
  const extra = name === 'release' ? (terms.uncertain ? ' as uncertain' : ' as certain') : stepOf(terms)
  return `${name} ${id} of request ${request.id}${extra}`
}

function stepOf({ label, state, order }: Command['terms']): string {
  return label === undefined ? '' : ` of ${label}, ${state} (${order})`
}

function replyOf({ reply }: Arrival): string {
  if ('ok' in reply && reply.ok) return 'ok'
  if ('acquired' in reply && reply.acquired) return `acquired, attempt ${reply.attempt}, '${reply.previousOutcome}'`
  const record = 'record' in reply ? reply.record : null
  if (record === null) return 'refused'
  const { state, attempt } = record
  return `refused: ${state}, attempt ${attempt}${state !== 'completed' && record.uncertain ? ', uncertain' : ''}`
}

function toldOf(told: Told): string {
  switch (told.type) {
    case 'own':
      return told.end.succeeded ? 'its own success' : 'its own failure'
    case 'replayed':
      return `a replay of '${textOf(told.answer)}'`
    case 'problem':
      return told.code
  }
}

function detailsOf(details: object): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}=${typeof value === 'object' ? (value as Error | null)?.name : value}`)
    .join(' ')
}

const MOMENTARY = new Set(['set-cookie', 'date', 'idempotent-replayed'])

/** An answer as one text, without what belongs to one moment or marks a replay. */
export function textOf({ status, statusMessage, headers, body }: Answer): string {
  let text = `${status} ${statusMessage}`
  for (const [name, value] of headers) if (!MOMENTARY.has(name.toLowerCase())) text += `, ${name}: ${value}`
  return body === null
    ? `${text}, not kept`
    : `${text}, ${Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1')}`
}
