import { setTimeout as pause } from 'node:timers/promises'
import type { Pool } from 'pg'
import type { FaultProxy } from '../../../test/support/fault-proxy.js'
import { IN_STATEMENT } from '../../../test/support/postgres-statements.js'
import { beatsIn } from '../limits/pulse.js'
import { sendAndWait, type Told, toldNothing } from './clients.js'
import { LEASE_MS, type Order } from './order.js'
import { untilHeld } from './scenery.js'
import type { Services } from './services.js'

const PATIENCE_BEATS = beatsIn(10 * LEASE_MS)
const COMPLETION = IN_STATEMENT.completion
const OPEN = `SELECT count(*)::int AS transactions FROM pg_stat_activity
  WHERE xact_start IS NOT NULL AND backend_type = 'client backend' AND pid <> pg_backend_pid()`

const ORDER: Order = {
  reserves: false,
  calls: false,
  thinksMs: 0,
  pauseMs: 0,
  staysOpen: true,
  isolation: null,
  isSealed: false,
  way: 'plain',
  isPatient: false,
}

/**
 * The completion of an owner is held back on its way, after its last renewal, until its lease has lapsed and another attempt has
 * taken the key over and written its own effect. Then it arrives, before the other's completion.
 */
export async function letStaleOwnerComplete(
  key: string,
  services: Services,
  application: FaultProxy,
  operator: Pool,
): Promise<Told> {
  const ids = new Set<string>()
  const ask = async (service: number) => {
    const id = await sendAndWait(services.port(service), key, ORDER, PATIENCE_BEATS, services.pulse(service))
    if (id !== null && id !== 'aborted') ids.add(id)
    return id
  }
  const askUntilTold = async (service: number) => {
    while ((await ask(service)) === null) await pause(50)
  }

  const owner = await untilHeld(COMPLETION, application, () => ask(0))
  const next = await untilHeld(COMPLETION, application, () => ask(1))
  owner.sendOn()
  await owner.answer
  while ((await operator.query(OPEN)).rows[0].transactions > 1) await pause(5)
  next.sendOn()
  await next.answer
  await askUntilTold(0)
  return { ...toldNothing(), ids }
}
