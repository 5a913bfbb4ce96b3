import { AsyncResource } from 'node:async_hooks'

/**
 * The async context of a request: made where the request is, and entered where it is told of something by what is not its
 * own: a timer, a connection, another request. Otherwise what its handler and its listeners store in an AsyncLocalStorage,
 * such as the tenant, would be another request's.
 */
export class OwnContext extends AsyncResource {
  constructor() {
    super('once-per-key', OPTIONS)
  }
}

/** Nobody is told when it is collected. */
const OPTIONS = { requireManualDestroy: true }

/** What a listener or a waiter throws changes nothing, and is not swallowed: it is thrown where nothing of ours is running. */
export function rethrow(error: unknown): void {
  process.nextTick(fail, error)
}

function fail(error: unknown): never {
  throw error
}
