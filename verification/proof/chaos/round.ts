import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newSealingKey } from 'once-per-key/sealed'
import type { Findings } from '../layer.js'
import { checkAnswers } from './answers.js'
import { type Asked, asker, isSuccess } from './asking.js'
import { checkSteps } from './check-steps.js'
import type { Choices } from './choices.js'
import { checkClaims } from './claims.js'
import { shop } from './clients.js'
import { type Books, checkEffects } from './effects.js'
import { strike } from './faults.js'
import { type Fleet, startFleet } from './fleet.js'
import { type Ground, RECORDS } from './ground.js'
import { historiesOf, type KeyHistory, paymentsOf } from './history.js'
import { instant, readJournals } from './journal.js'
import { lastLook } from './last-look.js'
import { checkLiveness } from './liveness.js'
import { lostRecords } from './losses.js'
import { createCalm } from './one-fault-at-a-time.js'
import { serviceFaults } from './service-faults.js'
import { add, isLacking, type Tally, tallyOf } from './tally.js'
import { verdictsFor } from './verdicts.js'

/** One time of chaos over one Redis, or one cluster. */
export interface Round {
  readonly name: string
  readonly seed: number
  readonly unknownOutcome: 'rerun' | 'refuse'
  readonly chaosMs: number
  readonly clients: number
  /** Whether answers are sealed. */
  readonly isSealed?: true
  ground(folder: string, services: number, policy: string): Promise<Ground>
}

/** What it came to. */
export interface Outcome {
  readonly figures: Tally
  readonly tried: Tally
}

const SERVICES = 3
const LEASE_MS = 1_200
/** Until each fault was tried: a busy machine needs more of them. */
const MOST_TIMES = 20
const LONGER_MS = 3_000
/** A bank that removes no duplicates: the other merchant's books do. */
const FORGETFUL = ['mer_globex']

export async function play(round: Round, choices: Choices, findings: Findings): Promise<Outcome> {
  const { unknownOutcome } = round
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-chaos-'))
  const before = findings.violations.length
  let ground: Ground | undefined
  let fleet: Fleet | undefined
  try {
    ground = await round.ground(folder, SERVICES, unknownOutcome)
    const { access, portsOf } = ground
    const sealingKey = round.isSealed === true ? newSealingKey() : null
    const common = { access, sealingKey, leaseMs: LEASE_MS, unknownOutcome, forgetful: FORGETFUL }
    fleet = await startFleet(folder, portsOf, common)
    return await playOn(round, { folder, ground, fleet }, choices, findings)
  } finally {
    fleet?.end()
    await ground?.close()
    if (findings.violations.length === before) rmSync(folder, { recursive: true, force: true })
  }
}

interface Stage {
  readonly folder: string
  readonly ground: Ground
  readonly fleet: Fleet
}

async function playOn(round: Round, stage: Stage, choices: Choices, findings: Findings): Promise<Outcome> {
  const { ground, fleet, folder } = stage
  const startedAt = instant()
  const log: Asked[] = []
  const ask = asker(fleet, log)
  const faults: Tally = {}
  const calm = createCalm()
  const lanesOf = (time: number) => [...serviceFaults(`${time}`, fleet, ask, LEASE_MS, calm), ...ground.lanes]
  for (const { name } of lanesOf(0).flatMap((lane) => lane.faults)) faults[name] = 0
  const triedIn = (histories: readonly KeyHistory[]) => ({ ...faults, ...tallyOf(histories, round.unknownOutcome) })
  const look = () => historiesOf(readJournals(fleet.journals), log, RECORDS)

  // On a busy machine less happens: then it goes on.
  for (let time = 0; time < MOST_TIMES && (time === 0 || isLacking(triedIn(look()))); time++) {
    const until = instant() + (time === 0 ? round.chaosMs : LONGER_MS)
    const isOpen = () => instant() < until
    const street = { name: `${time}`, ask, services: fleet.size, leaseMs: LEASE_MS, isOpen }
    await Promise.all([
      shop(round.clients, street, choices.of(`clients ${time}`)),
      strike(lanesOf(time), isOpen, calm, choices.of(`faults ${time}`), (name) => add(faults, { [name]: 1 })),
    ])
  }
  await ground.heal()
  const payments = historiesOf([], log, RECORDS).flatMap(paymentsOf)
  const lates = await lastLook(payments, ask, fleet, LEASE_MS + 2_000)
  const left = await fleet.shutDown()
  writeFileSync(join(folder, 'clients.jsonl'), log.map((asked) => `${JSON.stringify(asked)}\n`).join(''))

  const histories = look()
  const lost = lostRecords(histories, ground.failovers, LEASE_MS)
  const verdicts = verdictsFor(findings, {
    preamble: preambleOf(round, folder),
    startedAt,
    isLost: (key) => lost.has(key),
  })
  const books = booksIn(await ground.contents('payments-books:'))
  const effectOf = originsIn(histories)
  for (const history of histories) {
    checkClaims(history, LEASE_MS, verdicts)
    checkEffects(
      history,
      { leaseMs: LEASE_MS, unknownOutcome: round.unknownOutcome, forgetful: FORGETFUL },
      books,
      verdicts,
    )
    checkSteps(history, round.unknownOutcome, verdicts)
    checkAnswers(history, effectOf, FORGETFUL, verdicts)
    checkLiveness(history, lates, fleet, LEASE_MS, verdicts)
  }
  findings.expect('L3', left.length === 0, () => `Services did not end by themselves: ${left.join(', ')}.\n${folder}`)

  return {
    figures: {
      requests: log.length,
      keys: histories.length,
      successes: log.filter(isSuccess).length,
      ...(ground.failovers.length > 0 && {
        'records lost by failover': lost.size,
        'violations that a lost record explains': verdicts.explained,
      }),
    },
    tried: triedIn(histories),
  }
}

function preambleOf({ name, seed }: Round, folder: string): string {
  return (
    `Round "${name}", seed ${seed}: the seed chooses clients and faults; when each process runs is the machine's choice. ` +
    `Journals, the clients' log and what Redis wrote are kept in ${folder}`
  )
}

/** Payouts as they stand in Redis: `payments-books:{merchant}:payout:id`. */
function booksIn(contents: ReadonlyMap<string, Buffer>): Books {
  const counts = new Map<string, number>()
  for (const [key, value] of contents) {
    const [, scope] = /^payments-books:\{(.*)\}:payout:/.exec(key) ?? []
    if (scope === undefined) continue
    const name = `${scope} ${JSON.parse(value.toString()).reference}`
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return (scope, reference) => counts.get(`${scope} ${reference}`) ?? 0
}

function originsIn(histories: readonly KeyHistory[]): (entry: string) => KeyHistory | undefined {
  const origins = new Map(histories.flatMap((history) => history.effects.map(({ entry }) => [entry, history] as const)))
  return (entry) => origins.get(entry)
}
