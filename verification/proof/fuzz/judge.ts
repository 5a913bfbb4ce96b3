import { createHash } from 'node:crypto'
import type { RawReply } from '../../../test/support/raw-reply.js'
import type { Check } from '../checks.js'
import type { Findings } from '../layer.js'
import { KINDS, type Kind, type KindName, MOUNTS } from './mounts.js'
import type { SentRequest } from './requests.js'

/** A request that was sent, and what was known then: a reply must fit to that. */
export interface Pending {
  readonly request: SentRequest
  /** The success that a client had seen when it was sent. */
  readonly seen: Success | undefined
}

interface Success {
  readonly run: string
  readonly sameness: string
  /** `null`: its answer was not to be kept. */
  readonly essence: string | null
}

export interface Judge {
  sending(request: SentRequest): Pending
  heard(pending: Pending, reply: RawReply): void
  /** No reply came: in time, or before the connection closed. */
  unanswered(pending: Pending, what: string): void
  /** Whether Node itself may keep the connection open, and never answer: no key protects it, and a bare server does the same. */
  mayBeLeftOpen(request: SentRequest): boolean
  readonly counts: Readonly<Record<'requests' | 'replies' | 'replays' | 'conflicts' | 'refusals' | 'keyless', number>>
}

/**
 * Holds each reply against the contract, from the client's side. `storyOf` shows what was sent; `leftOpen` says which handlers make a bare
 * server of this Node keep a connection open.
 */
export function createJudge(
  findings: Findings,
  storyOf: (request: SentRequest) => string,
  leftOpen: ReadonlySet<KindName>,
): Judge {
  const successes = new Map<string, Success>()
  const uses = new Map<string, number>()
  const counts = { requests: 0, replies: 0, replays: 0, conflicts: 0, refusals: 0, keyless: 0 }

  function sending(request: SentRequest): Pending {
    counts.requests++
    const { record } = request
    if (record === null) return { request, seen: undefined }
    uses.set(record, (uses.get(record) ?? 0) + 1)
    return { request, seen: successes.get(record) }
  }

  function heard({ request, seen }: Pending, reply: RawReply): void {
    counts.replies++
    const told = tell(reply)
    const { code, run, of, isReplay } = told
    const expect = (check: Check, holds: boolean, what: string) =>
      findings.expect(check, holds, () => `${what}.\n${shown(reply)}\n${storyOf(request)}`)

    expect('L2', reply.status < 500 || told.isPlanned, 'The input alone caused an error of the server')
    expectOrigin()
    const refusal = refusalOf(request)
    if (refusal !== undefined) {
      counts.refusals++
      const fits = run === undefined && refusal.includes(code ?? reply.status)
      expect('S5', fits, `It must be refused with ${refusal}, and not run`)
      return
    }
    if (request.fault !== 'none') return
    if (request.record === null) {
      counts.keyless++
      expect('S8', !isReplay && of === request.id, 'A request without a key gets the answer of its own run')
      return
    }
    if (code !== undefined) expectConflict(request.record, code)
    else if (run !== undefined && isSuccess(reply, told)) expectSuccess(request.record, run)
    else if (seen !== undefined) expect('S3', false, `Run ${seen.run} had succeeded, and a client had seen it`)

    function expectOrigin(): void {
      if (!isReplay) {
        expect('S8', of === undefined || of === request.id, 'The answer came from another run')
        return
      }
      counts.replays++
      expect('S8', run !== undefined && isSuccess(reply, told), 'What is replayed is the success of a run')
      // What a parser makes of a faulty body, only the server knows.
      const isSame = request.fault !== 'none' || told.sameness === request.sameness
      expect('S9', isSame, 'The answer of another operation is replayed')
    }

    function expectConflict(record: string, problem: string): void {
      counts.conflicts++
      expect('S9', (uses.get(record) ?? 0) > 1, `Nobody else had used the key, and yet it is ${problem}`)
      if (problem === 'answer_not_kept') {
        const isPossible = KINDS[request.kind].outcome === 'success' && !request.isKept
        expect('S8', isPossible, 'No run gave an answer that was not to be kept')
      }
      if (seen === undefined) return
      const right = seen.sameness !== request.sameness ? 'mismatched' : seen.essence === null ? 'answer_not_kept' : ''
      const what = right === '' ? `Run ${seen.run}'s success must be replayed` : `It must be refused with ${right}`
      expect(right === 'mismatched' ? 'S9' : 'S3', problem === right, what)
    }

    function expectSuccess(record: string, its: string): void {
      const essence = isReplay || request.isKept ? essenceOf(reply, isReplay) : null
      if (told.digest !== undefined) {
        expect('S8', told.digest === digestOf(reply.body), 'The body is not what the handler wrote')
      }
      if (seen !== undefined) {
        expect('S3', isReplay, `Run ${seen.run} had succeeded, a client had seen it, and the handler ran again`)
      }
      const first = seen ?? successes.get(record)
      if (first === undefined) successes.set(record, { run: its, sameness: told.sameness ?? '', essence })
      else {
        expect('S2', first.run === its, `Run ${first.run} had succeeded as well`)
        expect(
          'S2',
          first.essence === essence,
          `It differs from what was seen first:\n${first.essence}\n---\n${essence}\n`,
        )
      }
    }
  }

  return {
    sending,
    heard,
    counts,
    mayBeLeftOpen: (request) => request.isBehind && isUnprotected(request) && leftOpen.has(request.kind),
    unanswered({ request }, what) {
      findings.expect('L2', false, () => `${what}: ${request.id} was not answered.\n${storyOf(request)}`)
    },
  }
}

interface Told {
  readonly run: string | undefined
  readonly of: string | undefined
  readonly sameness: string | undefined
  readonly digest: string | undefined
  readonly code: string | undefined
  readonly isReplay: boolean
  readonly isPlanned: boolean
}

function tell(reply: RawReply): Told {
  const first = (name: string) => reply.lines(name)[0]
  const run = first('X-Run')
  return {
    run,
    of: first('X-Of'),
    sameness: first('X-Sameness'),
    digest: first('X-Digest'),
    code: run === undefined ? /"code":"(\w+)"/.exec(reply.body.toString())?.[1] : undefined,
    isReplay: reply.lines('Idempotent-Replayed').length > 0,
    isPlanned: first('X-Planned') !== undefined,
  }
}

function isSuccess({ status }: RawReply, { isPlanned }: Told): boolean {
  return status >= 200 && status < 400 && status !== 307 && !isPlanned
}

/** What must be answered to a request that may not run: problem codes or statuses; `undefined`: it may. */
function refusalOf({ reading, fault, scope, mount }: SentRequest): readonly (string | number)[] | undefined {
  const isCovered =
    reading === 'invalid' || typeof reading === 'object' || (reading === 'absent' && MOUNTS[mount].required)
  if (!isCovered || fault === 'unsure') return undefined
  if (fault === 'refused') return [400, 413, 415, 403, 'key_invalid', 'key_missing', 'content_type_unsupported']
  if (reading === 'invalid') return ['key_invalid']
  if (reading === 'absent') return ['key_missing']
  if (scope === null) return [403]
  if (fault === 'unseen') return [415]
  return fault === 'deep' ? ['body_too_deep'] : undefined
}

/** Whether the handler runs as it would without the middleware. */
function isUnprotected({ reading, mount }: SentRequest): boolean {
  return reading === 'uncovered' || (reading === 'absent' && !MOUNTS[mount].required)
}

/** Of one response, or of its framing; or made for each request. */
const PASSING = new Set([
  'date',
  'connection',
  'keep-alive',
  'content-length',
  'transfer-encoding',
  'idempotent-replayed',
  'deprecation',
  'sunset',
])

/** What all who see a success must see alike. A session's cookies are for the first alone. */
function essenceOf({ status, statusMessage, headers, body }: RawReply, isReplay: boolean): string {
  const lines = headers
    .map(([name, value]) => `${name.toLowerCase()}: ${value}`)
    .filter((line) => !PASSING.has(line.slice(0, line.indexOf(':'))) && !line.includes('rel="deprecation"'))
    .filter((line) => isReplay || !line.startsWith('set-cookie'))
  return [`${status} ${statusMessage}`, ...lines.sort(), `${body.length} bytes ${digestOf(body)}`].join('\n')
}

function digestOf(bytes: Buffer): string {
  return createHash('sha1').update(bytes).digest('base64url')
}

function shown({ status, statusMessage, headers, body }: RawReply): string {
  const lines = headers.map(([name, value]) => `  ${name}: ${value}`)
  return [
    `It was answered: ${status} ${statusMessage}`,
    ...lines,
    `  ${JSON.stringify(body.toString('latin1', 0, 600))}`,
  ].join('\n')
}

/** Whether the answer of this request may stay out. */
export function mayStayUnanswered({ kind }: SentRequest): boolean {
  return (KINDS[kind] as Kind).breaksOff === true
}
