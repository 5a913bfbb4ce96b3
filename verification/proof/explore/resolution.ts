import { deliver, nextStep, SCOPE } from './choices.js'
import type { Client } from './client.js'
import type { Expect } from './invariants.js'
import { bookOf, type Ledger, mayLeaveDoubt } from './ledger.js'
import { TIMES } from './times.js'
import type { World } from './world.js'

/** The checks' two seconds are the library's default for a command's time limit. */
const RESOLVED_WITHIN_MS = TIMES.leaseMs + TIMES.storeTimeoutMs

/**
 * From here on nothing fails: whoever asks again must get somewhere, and everybody must have been answered. `isKnown`: it
 * was seen where this state comes to rest. `steps`: how many each handler takes.
 */
export async function resolve(
  world: World,
  ledger: Ledger,
  steps: number,
  isKnown: () => boolean,
  expect: Expect,
): Promise<void> {
  const { clock, clients } = world
  for (const { index, process } of clients) if (process === 'stalled') world.resume(index)
  const before = clients.length
  await comeToRest(world, steps)
  if (isKnown()) return

  const until = clock.now() + RESOLVED_WITHIN_MS
  let doubt = isDoubtful(ledger)
  let client = await ask(world, steps)
  while (!isResolved(client, world, ledger) && clock.now() < until) {
    await world.advance(until)
    await comeToRest(world, steps)
    doubt = isDoubtful(ledger)
    client = await ask(world, steps)
  }
  const told = client.told?.kind === 'problem' ? client.told.code : client.told?.kind
  expect('L1', isResolved(client, world, ledger), `when faults stopped, the key did not resolve: ${told}`)
  const isUnknown = ledger.standings[client.index]?.run?.previousOutcome === 'unknown' || told === 'outcome_unknown'
  expect('L1', !isUnknown || doubt, 'a claim that nobody ran was not given up, and made the outcome unknown')

  if (told === 'success') {
    const { told: again } = await ask(world, steps)
    expect('S3', again?.kind === 'success', 'a success is not replayed')
  }
  // Even of what was lost on its way a time limit will tell.
  while (clock.now() < until) await world.advance(until)
  for (const { index, process, told } of clients.slice(0, before)) {
    if (process === 'awake') expect('L2', told !== null, `request ${index} was never answered`)
  }
}

/** Sends the first request once more, and waits until it is answered. */
async function ask(world: World, steps: number): Promise<Client> {
  const client = await world.arrive(SCOPE, 'a payout')
  await comeToRest(world, steps)
  return client
}

/** All that is under way arrives, and handlers that run succeed. */
async function comeToRest(world: World, steps: number): Promise<void> {
  const { clients, network, clock } = world
  for (;;) {
    const [message] = network.messages
    const working = clients.find((client) => client.process === 'awake' && client.steps.isWorking())
    const running = clients.find(isFree)
    if (world.nextDueAt() <= clock.now()) await world.advance()
    else if (message !== undefined) await deliver(message, 'whole', world)
    else if (working !== undefined) await world.endStep(working.index, 'done')
    else if (running === undefined) return
    else {
      const label = nextStep(running, steps)
      if (label === null) await world.end(running.index, 'success')
      else await world.step(running.index, label)
    }
  }
}

/** Its handler runs, and waits for no step. */
function isFree({ process, stage, steps }: Client): boolean {
  return process === 'awake' && stage === 'running' && steps.calls.every((call) => call.stage !== 'asked')
}

function isResolved({ told }: Client, { policy }: World, ledger: Ledger): boolean {
  if (told?.kind === 'success') return true
  if (told?.kind !== 'problem') return false
  if (told.code === 'outcome_unknown') return policy === 'refuse'
  return told.code === 'mismatched' && bookOf(ledger, SCOPE).bound !== 'a payout'
}

function isDoubtful({ standings }: Ledger): boolean {
  return standings.some((standing) => standing.scope === SCOPE && mayLeaveDoubt(standing))
}
