import { setTimeout as pause } from 'node:timers/promises'
import type { FaultProxy } from '../../../test/support/fault-proxy.js'
import { inTime } from '../../../test/support/in-time.js'
import { send, type Told } from './clients.js'
import { LEASE_MS, type Order } from './order.js'
import type { Services } from './services.js'

const PATIENCE_MS = 10 * LEASE_MS

const ORDER: Order = {
  reserves: false,
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
export async function letStaleOwnerComplete(key: string, services: Services, application: FaultProxy): Promise<Told> {
  const ids = new Set<string>()
  const ask = async (service: number) => {
    const id = await send(services.port(service), key, ORDER, PATIENCE_MS)
    if (id !== null && id !== 'aborted') ids.add(id)
    return id
  }
  const askUntilTold = async (service: number) => {
    while ((await ask(service)) === null) await pause(50)
  }
  const held = async () => inTime(application.hold('complete_in_v1'), PATIENCE_MS)

  const [letOwnerGo, owner] = [held(), ask(0)]
  await letOwnerGo
  const [letNextGo, next] = [held(), askUntilTold(1)]
  await letNextGo
  ;(await letOwnerGo)()
  await owner
  ;(await letNextGo)()
  await next
  await askUntilTold(0)
  return { ids, unanswered: 0, aborted: 0 }
}
