import { Findings, type Layer, type Report } from '../layer.js'
import { ownPulse } from '../limits/pulse.js'
import { findKindsLeftOpen } from './bare-node.js'
import { inTime, type Patience } from './client.js'
import { again, attack, closing, cut, disconnect, type Play, race, talk } from './client-behaviours.js'
import { createJudge } from './judge.js'
import type { KindName } from './mounts.js'
import { randomOf } from './random.js'
import { type Service, startService } from './service.js'
import type { Tried } from './stage.js'
import { createTranscripts } from './transcripts.js'

const REQUESTS = 100_000
/** Then the service closes, and the next is started: its store keeps everything. */
const REQUESTS_OF_A_SERVICE = 25_000
const LANES = 12
const PATIENCE_BEATS = 200
/** One hang is a violation; more of them only take time. */
const MOST_LATE = 5

const PLAYS: readonly Play[] = [
  talk,
  talk,
  talk,
  talk,
  talk,
  talk,
  race,
  race,
  disconnect,
  cut,
  cut,
  again,
  attack,
  attack,
]

/** Scripts meet the keys of those shortly before them. */
const BEFORE = 60
const BEHIND = 12
/** `PROVE_SCRIPT=8020` repeats one script that was reported, and what stood around it. */
const REPEATED = process.env.PROVE_SCRIPT === undefined ? undefined : Number(process.env.PROVE_SCRIPT)

/** Hostile and honest clients on real servers: Express 4, Express 5 and plain node:http. */
export const fuzz: Layer = async ({ scale, seed, progress }) => {
  const findings = new Findings()
  const goal = Math.ceil(REQUESTS * scale)
  const totals: Record<string, number> = {}
  const add = (figures: Readonly<Record<string, number>>) => {
    for (const [name, figure] of Object.entries(figures)) totals[name] = (totals[name] ?? 0) + figure
  }
  const patience: Patience = { beats: PATIENCE_BEATS, pulse: ownPulse, late: 0 }
  const leftOpen = await findKindsLeftOpen()

  let script = REPEATED === undefined ? 0 : Math.max(0, REPEATED - BEFORE)
  const until = REPEATED === undefined ? Number.POSITIVE_INFINITY : REPEATED + BEHIND
  while ((totals.requests ?? 0) < goal && script < until && patience.late < MOST_LATE) {
    const before = totals.requests ?? 0
    const wanted = Math.min(REQUESTS_OF_A_SERVICE, goal - before)
    const onRequests = (requests: number) => progress(Math.min(1, (before + requests) / goal))
    const served = await serveOnce({ seed, from: script, until, wanted, findings, patience, leftOpen, onRequests })
    add(served.figures)
    script = served.next
    if (served.crashed) break
  }
  return reportOf(findings, totals)
}

interface Turn {
  readonly seed: number
  /** The number of the first script. */
  readonly from: number
  /** The number behind the last script. */
  readonly until: number
  /** How many requests. */
  readonly wanted: number
  readonly findings: Findings
  readonly patience: Patience
  readonly leftOpen: ReadonlySet<KindName>
  onRequests(requests: number): void
}

/** One service from its start to its exit. */
async function serveOnce({ seed, from, until, wanted, findings, patience, leftOpen, onRequests }: Turn) {
  const transcripts = createTranscripts(seed)
  const service = await startService(({ check, request, story }) => {
    findings.expect(check, false, () => `${story}\n${transcripts.of(request)}`)
  })
  patience.pulse = service.pulse
  const judge = createJudge(findings, ({ id }) => transcripts.of(id), leftOpen)
  const figures: Record<string, number> = {}
  const tried = (what: Tried, times = 1) => {
    figures[what] = (figures[what] ?? 0) + times
  }
  let next = from
  let crashed = false
  void service.exited.then((end) => {
    if (isClosing) return
    crashed = true
    findings.expect('L2', false, () => `The service died (${end}): ${service.lastWords()}\n${transcripts.unfinished()}`)
  })
  let isClosing = false

  async function perform(play: Play, script: number): Promise<void> {
    const log = transcripts.open(script, play.name)
    const story = () => transcripts.of(`${script}`)
    const random = randomOf(seed, script)
    random.below(2) // What chose the play.
    await play({ seed, service, judge, findings, patience, leftOpen, script, random, log, story, tried })
    transcripts.close(script)
  }

  async function lane(): Promise<void> {
    while (!crashed && patience.late < MOST_LATE && judge.counts.requests < wanted && next < until) {
      const script = next++
      await perform(randomOf(seed, script).pick(PLAYS), script)
      onRequests(judge.counts.requests)
    }
  }

  await Promise.all(Array.from({ length: LANES }, lane))
  if (!crashed) {
    isClosing = true
    await perform(closing, next)
    next += CLOSING_OPERATIONS
    const account = await exit(service, findings, patience)
    if (account !== undefined) {
      const { checked, ...counts } = account
      addChecked(findings, checked)
      Object.assign(figures, counts)
    }
  }
  service.kill()
  return { figures: { ...figures, ...judge.counts }, next, crashed }
}

/** More than the operations of the last play, so that no number is used twice. */
const CLOSING_OPERATIONS = 30

async function exit(service: Service, findings: Findings, patience: Patience) {
  const closed = await inTime(service.closed, patience)
  findings.expect(
    'L3',
    closed !== 'late',
    () => `Not all comes to its end, although all clients have left: ${service.lastWords()}`,
  )
  if (closed === 'late') return undefined
  const end = await inTime(service.exited, patience)
  findings.expect(
    'L3',
    end === 0,
    () => `All is closed, and yet the process does not exit (${end}): ${closed.resources}`,
  )
  return closed.account
}

function addChecked(findings: Findings, checked: Readonly<Record<string, number>>): void {
  const own = findings.checked as Record<string, number>
  for (const [check, times] of Object.entries(checked)) own[check] = (own[check] ?? 0) + times
}

function reportOf(findings: Findings, totals: Readonly<Record<string, number>>): Report {
  const of = (name: string) => totals[name] ?? 0
  const figures = {
    requests: of('requests'),
    connections: of('connections'),
    'hostile connections': of('hostile'),
    runs: of('runs'),
    successes: of('successes'),
    replays: of('replays'),
    conflicts: of('conflicts'),
    refusals: of('refusals'),
    'clients that left a running handler': of('abandoned'),
  }
  const { requests: _, connections: __, ...tried } = figures
  return {
    figures: { ...figures, 'connections that Node itself left open': of('left open') },
    checked: findings.checked,
    tried: {
      ...tried,
      pipelined: of('pipelined'),
      races: of('races'),
      disconnects: of('disconnects'),
      cuts: of('cuts'),
      repeated: of('repeated'),
      keyless: of('keyless'),
    },
    violations: findings.violations,
  }
}
