import type { Servers } from './protection.js'
import { type Service, startService } from './service.js'
import { variantOf } from './variants.js'

/** The services that were needed so far, each a process that stays until the end. */
export interface Services {
  of(variant: string): Promise<Service>
  end(): Promise<void>
}

/** `node`: the path of the Node that runs them. */
export function startedOnDemand(servers: Servers, node = process.execPath): Services {
  const started = new Map<string, Promise<Service>>()
  return {
    of(variant) {
      const service = started.get(variant) ?? startService(variantOf(variant), servers, node)
      started.set(variant, service)
      return service
    },
    async end() {
      await Promise.all([...started.values()].map(async (service) => (await service).end()))
    },
  }
}
