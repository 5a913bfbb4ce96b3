import { AsyncLocalStorage } from 'node:async_hooks'
import type { Request } from './history.js'

/** Knows for which request an engine is at work: the first claim of a duplicate that waits may come long after it was asked. */
export interface WorkInHand {
  of<T>(request: Request, work: () => T): T
  readonly request: Request | undefined
  end(): void
}

/** Following promises takes as much time as all the rest: it is done only where engines let duplicates wait. */
export function workInHand(duplicatesWait: boolean): WorkInHand {
  return duplicatesWait ? throughPromises() : atOnce()
}

function throughPromises(): WorkInHand {
  const storage = new AsyncLocalStorage<Request>()
  return {
    of: (request, work) => storage.run(request, work),
    get request() {
      return storage.getStore()
    },
    end: () => storage.disable(),
  }
}

function atOnce(): WorkInHand {
  let current: Request | undefined
  return {
    of(request, work) {
      current = request
      try {
        return work()
      } finally {
        current = undefined
      }
    },
    get request() {
      return current
    },
    end() {},
  }
}
