import type { Evidence } from './evidence.js'
import type { Arrival, Request, Told } from './history.js'

/** For timers that count whole milliseconds. */
const SLACK_MS = 5
/** How long a claim that nobody runs may hold its key where its release gets through. */
const GHOST_MS = 2_000

/** L1, and L2: every request is answered, in time. */
export function livenessOf(evidence: Evidence) {
  const { setting, tally, expect, ledgerOf, attemptOf } = evidence
  const { storeTimeoutMs, inFlightWaitMs } = setting.options
  const unanswered = new Set<Request>()
  const answered = new WeakSet<Request>()
  const ghosts: { readonly at: number; readonly request: Request }[] = []

  function asked(request: Request): void {
    unanswered.add(request)
  }

  function told(request: Request, told: Told, stalledMs: number, at: number): void {
    unanswered.delete(request)
    answered.add(request)
    const { run } = request
    const from = run?.end == null ? request.askedAt + inFlightWaitMs : run.end.at
    const isInTime = at <= from + storeTimeoutMs + stalledMs + SLACK_MS
    expect('L2', isInTime, request, 'a request is answered late')
    if (told.type !== 'problem') return
    if (told.code === 'store_unavailable') unavailable(request, stalledMs, at)
    if (request.isProbe) {
      const isResolved = told.code !== 'in_flight' && told.code !== 'store_unavailable'
      expect('L1', isResolved, request, 'a lease and 2 s after the last fault the key has not resolved')
    }
    if (run === null) giveUp(request, at)
  }

  function unavailable(request: Request, stalledMs: number, at: number): void {
    if (request.run !== null) {
      const byChoice = setting.options.unconfirmedSuccess === 'withhold'
      tally[byChoice ? 'unconfirmed successes withheld by choice' : 'unconfirmed successes withheld']++
      return
    }
    const isInTime = request.asked !== null && at <= request.asked.sentAt + storeTimeoutMs + stalledMs + SLACK_MS
    expect('S10', isInTime, request, 'where the store fails, its client is answered late')
  }

  /** It has been refused: if it holds the key all the same, then for nobody. */
  function giveUp(request: Request, at: number): void {
    if (!holds(request, at)) return
    tally['claims given up']++
    if (request.isLeft && attemptOf(request).begins > 1) tally['claims by waiters whose client had left']++
    watch(request, at)
  }

  /** A claim is confirmed after its request was answered: whoever hears it must release it. */
  function heard({ command, reply }: Arrival, at: number): void {
    const { request } = command
    if (command.name !== 'begin' || !('acquired' in reply) || !reply.acquired) return
    if (at >= command.sentAt + setting.options.leaseMs && !answered.has(request)) tally['late begins']++
    if (answered.has(request) && request.run === null) watch(request, at)
  }

  function watch(request: Request, at: number): void {
    ghosts.push({ at: at + GHOST_MS, request })
  }

  function passTo(at: number): void {
    while (ghosts.length > 0 && (ghosts[0]?.at ?? at) < at) {
      const ghost = ghosts.shift()
      if (ghost === undefined || isExcused(ghost.request, ghost.at - GHOST_MS)) continue
      expect('L1', !holds(ghost.request, ghost.at), ghost.request, 'a claim that nobody runs holds its key')
    }
  }

  /** Where a duplicate may have claimed, or where faults kept a release back, the lease ends it. */
  function isExcused(request: Request, from: number): boolean {
    const { isDuplicated, releases } = attemptOf(request)
    const { isCrashed, lastStalledAt } = evidence.instanceOf(request.instance)
    if (isDuplicated || releases.some(({ isHindered }) => isHindered)) return true
    return from < setting.faultsEndAt && (releases.length > 0 || isCrashed || lastStalledAt >= from)
  }

  function holds(request: Request, at: number): boolean {
    const entry = ledgerOf(request).at(at)
    return entry !== null && entry.state === 'held' && entry.token === request.token && at < entry.leaseUntil
  }

  function crashed(instance: number): void {
    for (const request of unanswered) if (request.instance === instance) unanswered.delete(request)
  }

  function end(): void {
    for (const request of unanswered) {
      const isRunning = request.run !== null && request.run.end === null
      expect('L2', isRunning, request, `request ${request.id} is never answered`)
    }
  }

  return { asked, told, heard, passTo, crashed, end }
}
