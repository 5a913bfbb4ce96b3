import type { Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'

export type Command = 'begin' | 'renew' | 'complete' | 'release'

/** What happens to one command: `take` lets the store take it. */
export type Fault = <Reply>(take: () => Promise<Reply>) => Promise<Reply>

/** What was sent to the store, in order; `answered`: the reply or an error has come back. */
export interface Sent {
  readonly command: Command
  readonly key: string
  readonly terms: {
    readonly token: string
    readonly attempt?: number
    readonly uncertain?: boolean
    readonly retentionMs?: number
  }
  readonly at: number
  answered: boolean
}

export interface FailingStore extends Store {
  readonly sent: readonly Sent[]
  /** The next commands of this name, one fault each; those after them are taken as usual. */
  next(command: Command, ...faults: Fault[]): void
  /** All commands of this name, until `heal`. */
  always(command: Command, fault: Fault): void
  heal(): void
  /** The names of the commands that were sent. */
  names(): Command[]
  countOf(command: Command): number
}

/** A right store behind a wrong network. */
export function failingStore(inner: Store = new MemoryStore()): FailingStore {
  const sent: Sent[] = []
  const once = new Map<Command, Fault[]>()
  const always = new Map<Command, Fault>()

  function send<Reply>(command: Command, key: string, terms: Sent['terms'], take: () => Promise<Reply>) {
    const entry: Sent = { command, key, terms, at: performance.now(), answered: false }
    sent.push(entry)
    const fault = once.get(command)?.shift() ?? always.get(command) ?? ((run) => run())
    return fault(take).finally(() => {
      entry.answered = true
    })
  }

  return {
    begin: (key, claim) => send('begin', key, claim, async () => inner.begin(key, claim)),
    renew: (key, own) => send('renew', key, own, async () => inner.renew(key, own)),
    complete: (key, own) => send('complete', key, own, async () => inner.complete(key, own)),
    release: (key, own) => send('release', key, own, async () => inner.release(key, own)),
    sent,
    next: (command, ...faults) => void once.set(command, [...(once.get(command) ?? []), ...faults]),
    always: (command, fault) => void always.set(command, fault),
    heal() {
      once.clear()
      always.clear()
    },
    names: () => sent.map(({ command }) => command),
    countOf: (command) => sent.filter((one) => one.command === command).length,
  }
}
