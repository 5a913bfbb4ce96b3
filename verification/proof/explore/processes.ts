import { createRequestEngine, type IdempotencyEvent, type RequestEngine } from 'once-per-key/http'
import type { Command, Reply } from './history.js'
import { TIMES } from './times.js'

export type Policy = 'rerun' | 'refuse'

/** What an engine meets outside: the store, and whoever listens to its events. */
export interface Outside {
  send<R extends Reply>(by: number, key: string, command: Command): Promise<R>
  hear(by: number, event: IdempotencyEvent): void
}

/** An engine for each request, as if each went to another process. */
export interface Processes {
  readonly policy: Policy
  engineOf(by: number): RequestEngine<string>
  /** Whom the engines talk to from now on. They are new ones: an engine knows what its store has not answered. */
  connect(outside: Outside): void
}

export function startProcesses(policy: Policy): Processes {
  const engines: RequestEngine<string>[] = []
  let outside: Outside | undefined

  function start(by: number): RequestEngine<string> {
    const send = <R extends Reply>(key: string, command: Command) => (outside as Outside).send<R>(by, key, command)
    return createRequestEngine<string>({
      store: {
        begin: (key, claim) => send(key, { name: 'begin', claim }),
        renew: (key, own) => send(key, { name: 'renew', own }),
        complete: (key, own) => send(key, { name: 'complete', own }),
        release: (key, own) => send(key, { name: 'release', own }),
        step: (key, own) => send(key, { name: 'step', own }),
      },
      scope: (from) => from,
      unknownOutcome: policy,
      ...TIMES,
      onEvent: (event) => outside?.hear(by, event),
    })
  }

  return {
    policy,
    engineOf(by) {
      engines[by] ??= start(by)
      return engines[by]
    },
    connect(to) {
      outside = to
      engines.length = 0
    },
  }
}
