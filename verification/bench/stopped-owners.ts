import { setTimeout as pause } from 'node:timers/promises'
import { ANSWER_BYTES, WAIT_MS } from './payout.js'
import { pay } from './probe.js'
import type { Servers } from './protection.js'
import { type Service, startService } from './service.js'
import type { Variant } from './variants.js'

/** What became of a key whose owner stood still in the middle of its work, as a process that has crashed does. */
export interface StoppedOwner {
  /** Once its lease had passed, another process did the work. */
  readonly isFreed: boolean
  /** The owner went on, and its late answer did not replace that of the other; `null`: there was no other. */
  readonly isFenced: boolean | null
}

/** The longest lease that a variant has by default, and a second. */
const LAPSED_MS = 31_000

/** All owners stand still at the same time, so that the lease is waited for only once. */
export async function probeStoppedOwners(
  variants: readonly Variant[],
  servers: Servers,
): Promise<ReadonlyMap<string, StoppedOwner>> {
  const owners = await Promise.all(variants.map((variant) => stopOwner(variant, servers)))
  await pause(LAPSED_MS)
  const found = new Map<string, StoppedOwner>()
  for (const owner of owners) found.set(owner.service.variant.name, await probeSuccessor(owner, servers))
  return found
}

interface Owner {
  readonly service: Service
  /** When its own client has an answer, or none. */
  readonly answered: Promise<unknown>
}

async function stopOwner(variant: Variant, servers: Servers): Promise<Owner> {
  const service = await startFresh(variant, servers)
  await pay(service.port, `before-${keyOf(variant)}`) // So that its next payout has another id than its successor's first.
  await service.call('begin')
  const options = { headers: { [WAIT_MS]: '1000' }, timeoutMs: 4 * LAPSED_MS }
  const answered = pay(service.port, keyOf(variant), options).catch(() => {})
  while ((await service.call('end')).runs === 0) await pause(20)
  service.signal('SIGSTOP')
  return { service, answered }
}

async function probeSuccessor({ service: owner, answered }: Owner, servers: Servers): Promise<StoppedOwner> {
  const key = keyOf(owner.variant)
  const successor = await startFresh(owner.variant, servers)
  const reply = await pay(successor.port, key).catch(() => undefined)
  const isFreed = reply?.status === 201
  owner.signal('SIGCONT')
  await answered
  const isFenced = isFreed ? (await pay(successor.port, key)).text === reply.text : null
  await Promise.all([owner.end(), successor.end()])
  return { isFreed, isFenced }
}

async function startFresh(variant: Variant, servers: Servers): Promise<Service> {
  const service = await startService(variant, servers, process.execPath)
  await service.call('reset', { phase: 'first', answerBytes: ANSWER_BYTES })
  return service
}

/** Variants of one library have the same records. */
function keyOf({ name }: Variant): string {
  return `stopped-${name}`
}
