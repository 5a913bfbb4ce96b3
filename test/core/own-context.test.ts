import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Claimant,
  createOperationEngine,
  type EngineEvent,
  type EngineOptions,
  type Hearing,
  machine,
  type OwnersCommand,
  type Run,
  type RunEnd,
  type SentOperation,
  type Settling,
  type Store,
} from 'once-per-key/core'
import { sealed } from 'once-per-key/sealed'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { TIMES } from '../support/engine-on-trial.js'
import { answer } from '../support/request-facts.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const tenant = new AsyncLocalStorage<string>()

/** Tells replies by `send`, from its connection's own context, when `tell` is called. */
class ConnectedStore implements Store {
  readonly sent: OwnersCommand[] = []
  readonly #records = new Map<string, machine.StoredRecord>()
  #waiting: (() => void)[] = []

  send(command: OwnersCommand, operation: SentOperation, hearing: Hearing<never>): void {
    this.sent.push(command)
    const { recordKey, answer, failure, terms, token, scope, fingerprint, attempt, uncertain } = operation
    const own = { token, scope, fingerprint, attempt, uncertain, retentionMs: terms.unknownRetentionMs }
    const stored = this.#records.get(recordKey) ?? null
    const step = (): machine.Change<unknown> => {
      switch (command) {
        case 'begin':
          return machine.begin(stored, { ...own, leaseMs: terms.leaseMs, unknownOutcome: terms.unknownOutcome }, 0)
        case 'renew':
          return machine.renew(stored, { ...own, leaseMs: terms.leaseMs }, 0)
        case 'complete':
          return machine.complete(stored, { ...own, answer: answer as NonNullable<typeof answer> }, 0)
        case 'release':
          return machine.release(
            stored,
            { ...own, uncertain: failure?.uncertain === true, failedMs: terms.failedMs },
            0,
          )
      }
    }
    const { record, reply } = step()
    if (record !== null) this.#records.set(recordKey, record)
    this.#waiting.push(() => hearing.heard(reply as never))
  }

  tell(): void {
    const waiting = this.#waiting
    this.#waiting = []
    tenant.run('the connection', () => {
      for (const hear of waiting) hear()
    })
  }

  lose(): void {
    this.#waiting = []
  }

  begin(): never {
    throw askedWithoutSend()
  }

  renew(): never {
    throw askedWithoutSend()
  }

  complete(): never {
    throw askedWithoutSend()
  }

  release(): never {
    throw askedWithoutSend()
  }
}

function askedWithoutSend(): Error {
  return new Error('The store was asked without `send`.')
}

/** Notes in which context it is told what. */
class Asker implements Claimant, Settling {
  readonly heard: (readonly [what: string, tenant: string | undefined])[] = []
  run: Run | undefined

  claimed(run: Run): void {
    this.run = run
    this.#note('claimed')
  }

  refused(told: { readonly action: string; readonly code?: string }): void {
    this.#note(told.code ?? told.action)
  }

  settled(end: RunEnd): void {
    this.#note(end.action)
  }

  isAbandoned(): boolean {
    return false
  }

  #note(what: string): void {
    this.heard.push([what, tenant.getStore()])
  }
}

function identity(key: string) {
  return { scope: 'acme', key, fingerprint: 'f' }
}

function onTrial(options: Partial<EngineOptions> = {}) {
  const store = new ConnectedStore()
  const events: (readonly [type: EngineEvent['type'], tenant: string | undefined])[] = []
  const onEvent = ({ type }: EngineEvent) => void events.push([type, tenant.getStore()])
  const engine = createOperationEngine({ store, onEvent, ...TIMES, ...options })
  const ask = (name: string, key = name): Asker => {
    const asker = new Asker()
    tenant.run(name, () => engine.claimFor(identity(key), asker))
    return asker
  }
  return { store, events, engine, ask }
}

describe('whoever waits is told in its own request’s context', () => {
  test('of its claim and of its end, not in that of the connection', () => {
    const { store, events, ask } = onTrial()
    const a = ask('a')
    const b = ask('b')
    store.tell()
    a.run?.completeFor(a, answer())
    b.run?.failFor(b, 'perhaps', 'no_answer')
    store.tell()
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
    expect(store.sent).toEqual(['begin', 'begin', 'complete', 'release'])
  })

  test('of a time limit, not in that of the timer, which another request has set', async () => {
    const { store, events, ask } = onTrial()
    const a = ask('a')
    const b = ask('b')
    store.lose()
    await vi.advanceTimersByTimeAsync(TIMES.storeTimeoutMs)
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
    store.tell()
    const aborted: (string | undefined)[] = []
    for (const { run } of [a, b]) {
      run?.context.signal.addEventListener('abort', () => aborted.push(tenant.getStore()))
    }
    await vi.advanceTimersByTimeAsync(TIMES.leaseMs)
    expect(aborted).toEqual(['a', 'b'])
    expect(events.filter(([type]) => type === 'lease_lost')).toEqual([
      ['lease_lost', 'a'],
      ['lease_lost', 'b'],
    ])
  })

  test('of the answer of the run that it waited for, after that run’s owner has returned', async () => {
    const { store, ask } = onTrial({ inFlightWaitMs: 10_000 })
    const a = ask('a', 'key')
    store.tell()
    const b = ask('b', 'key')
    a.run?.completeFor(a, answer())
    store.tell()
    expect(b.heard).toEqual([])
    await vi.advanceTimersByTimeAsync(0)
    expect(b.heard).toEqual([['replay', 'b']])
    expect(store.sent).toEqual(['begin', 'complete'])
  })
})

describe('whoever waits', () => {
  test('throws what it throws on a later tick, and nothing has changed by it', () => {
    const { store, engine, events } = onTrial()
    const thrown: unknown[] = []
    const nextTick = vi.spyOn(process, 'nextTick').mockImplementation((fail, error) => {
      expect(() => fail(error)).toThrow(error as Error)
      thrown.push(error)
    })
    const lost = new Error('in claimed')
    const asker = new Asker()
    const claimed = asker.claimed.bind(asker)
    asker.claimed = (run) => {
      claimed(run)
      throw lost
    }
    const other = new Asker()
    engine.claimFor(identity('order-1'), asker)
    engine.claimFor(identity('order-2'), other)
    store.tell()
    asker.settled = () => {
      throw lost
    }
    asker.run?.completeFor(asker, answer())
    store.tell()
    nextTick.mockRestore()
    expect(thrown).toEqual([lost, lost])
    expect(other.heard).toEqual([['claimed', undefined]])
    expect(events.map(([type]) => type)).toEqual(['claimed', 'claimed', 'completed'])
  })

  test('is told once, however often the store tells', () => {
    const { store, engine } = onTrial()
    const asker = new Asker()
    const send = store.send.bind(store)
    const hearings: Hearing<never>[] = []
    store.send = (command, operation, hearing) => {
      hearings.push(hearing)
      send(command, operation, hearing)
    }
    engine.claimFor(identity('order-1'), asker)
    store.tell()
    hearings[0]?.failed(new Error('too late'))
    hearings[0]?.heard({ acquired: true, attempt: 7, previousOutcome: 'none' } as never)
    expect(asker.heard).toEqual([['claimed', undefined]])
    expect(asker.run?.attempt).toBe(1)
  })
})

describe('`send` is not used in place of a command that was replaced', () => {
  const acquired = { acquired: true, attempt: 3, previousOutcome: 'none' } as const

  test.each<[string, () => Store]>([
    ['on the store', () => Object.assign(new ConnectedStore(), { begin: () => acquired })],
    ['by an object over it', () => Object.assign(Object.create(new ConnectedStore()), { begin: () => acquired })],
    [
      'by a proxy',
      () =>
        new Proxy(new ConnectedStore(), {
          get: (store, name) => (name === 'begin' ? () => acquired : Reflect.get(store, name)),
        }),
    ],
    [
      'by a seal, which would be missing',
      () =>
        sealed(Object.assign(new ConnectedStore(), { begin: () => acquired }), {
          keys: [Buffer.alloc(32).toString('base64')],
        }),
    ],
  ])('%s', (_how, storeOf) => {
    const asker = new Asker()
    createOperationEngine({ store: storeOf(), ...TIMES }).claimFor(identity('order-1'), asker)
    expect(asker.run?.attempt).toBe(3)
  })
})
