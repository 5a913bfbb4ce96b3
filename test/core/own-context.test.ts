import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Run as ClaimedRun,
  createOperationEngine,
  type EngineEvent,
  type EngineOptions,
  machine,
  type Store,
} from 'once-per-key/core'
import { describe, expect, test } from 'vitest'
import { answer } from '../support/request-facts.js'

// Real timers: fake ones run in the context of whoever advances the clock.
const REAL = { storeTimeoutMs: 30, leaseMs: 120, maxRunMs: 10_000 }
const passing = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const tenant = new AsyncLocalStorage<string>()

/** Replies from its connection's own context, when `tell` is called. */
class ConnectedStore implements Store {
  readonly #records = new Map<string, machine.StoredRecord>()
  #waiting: (() => void)[] = []

  begin = this.#by(machine.begin)
  renew = this.#by(machine.renew)
  complete = this.#by(machine.complete)
  release = this.#by(machine.release)

  #by<Given, Reply>(step: (stored: machine.StoredRecord | null, given: Given, now: number) => machine.Change<Reply>) {
    return (key: string, given: Given): Promise<Reply> => {
      const { record, reply } = step(this.#records.get(key) ?? null, given, 0)
      if (record !== null) this.#records.set(key, record)
      return new Promise((resolve) => this.#waiting.push(() => resolve(reply)))
    }
  }

  async tell(): Promise<void> {
    const waiting = this.#waiting
    this.#waiting = []
    tenant.run('the connection', () => {
      for (const hear of waiting) hear()
    })
    await passing(1)
  }

  lose(): void {
    this.#waiting = []
  }
}

/** Notes in which context it goes on. */
class Asker {
  readonly heard: (readonly [what: string, tenant: string | undefined])[] = []
  run: ClaimedRun | undefined

  async ask(claim: () => ReturnType<ReturnType<typeof createOperationEngine>['claim']>): Promise<void> {
    const claimed = await claim()
    if (claimed.action === 'execute') this.run = claimed.run
    this.#note(claimed.action === 'execute' ? 'claimed' : claimed.action === 'replay' ? 'replay' : claimed.code)
  }

  async end(ending: (run: ClaimedRun) => ReturnType<ClaimedRun['complete']>): Promise<void> {
    const end = await ending(this.run as ClaimedRun)
    this.#note(end.action)
  }

  #note(what: string): void {
    this.heard.push([what, tenant.getStore()])
  }
}

function onTrial(options: Partial<EngineOptions> = {}) {
  const store = new ConnectedStore()
  const events: (readonly [type: EngineEvent['type'], tenant: string | undefined])[] = []
  const onEvent = ({ type }: EngineEvent) => void events.push([type, tenant.getStore()])
  const engine = createOperationEngine({ store, onEvent, ...REAL, ...options })
  const ask = (name: string, key = name): Asker => {
    const asker = new Asker()
    tenant.run(name, () => void asker.ask(() => engine.claim({ scope: 'acme', key, fingerprint: 'f' })))
    return asker
  }
  return { store, events, ask }
}

describe('whoever waits goes on in its own request’s context', () => {
  test('of its claim and of its end, not in that of the connection', async () => {
    const { store, events, ask } = onTrial()
    const a = ask('a')
    const b = ask('b')
    await store.tell()
    tenant.run('a', () => void a.end((run) => run.complete(answer())))
    tenant.run('b', () => void b.end((run) => run.fail('perhaps', 'no_answer')))
    await store.tell()
    expect(a.heard).toEqual([
      ['claimed', 'a'],
      ['send', 'a'],
    ])
    expect(b.heard).toEqual([
      ['claimed', 'b'],
      ['send', 'b'],
    ])
    expect(events).toEqual([
      ['claimed', 'a'],
      ['claimed', 'b'],
      ['completed', 'a'],
      ['failed', 'b'],
    ])
  })

  test('of a time limit, not in that of the timer, which another request has set', async () => {
    const { store, events, ask } = onTrial()
    const a = ask('a')
    const b = ask('b')
    store.lose()
    await passing(REAL.storeTimeoutMs + 30)
    expect(a.heard).toEqual([['store_unavailable', 'a']])
    expect(b.heard).toEqual([['store_unavailable', 'b']])
    expect(events.slice(0, 2)).toEqual([
      ['store_failed', 'a'],
      ['store_failed', 'b'],
    ])
  })

  test('of a lease that lapses, and its handler’s signal too', async () => {
    const { store, events, ask } = onTrial()
    const a = ask('a')
    const b = ask('b')
    await store.tell()
    const aborted: (string | undefined)[] = []
    for (const { run } of [a, b]) run?.context.signal.addEventListener('abort', () => aborted.push(tenant.getStore()))
    await passing(REAL.leaseMs + 30)
    expect(aborted.sort()).toEqual(['a', 'b']) // Each has a timer of its own.
    expect(events.filter(([type]) => type === 'lease_lost').sort()).toEqual([
      ['lease_lost', 'a'],
      ['lease_lost', 'b'],
    ])
  })

  test('of the answer of the run that it waited for, after that run’s owner has returned', async () => {
    const { store, ask } = onTrial({ inFlightWaitMs: 10_000 })
    const a = ask('a', 'key')
    await store.tell()
    const b = ask('b', 'key')
    tenant.run('a', () => void a.end((run) => run.complete(answer())))
    await store.tell()
    await passing(1)
    expect(b.heard).toEqual([['replay', 'b']])
  })
})
