import { AsyncLocalStorage } from 'node:async_hooks'
import { createClient, type KeyStorage, type Outcome } from 'once-per-key/client'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { choicesOf } from '../support/choices.js'
import { gate } from '../support/gate.js'
import * as trial from './trial.js'
import { BODY, declined, done, hangUp, loggedOut, OPERATION, replayed, type Step, URL_OF_PAYOUTS } from './trial.js'

// Of two clients over one storage, one forgot the key that the other one was using: after its own refusal, or because it was done. The
// other one's next call took a new key, and paid again.

describe('of two clients over one storage', () => {
  test('the one that made the key does not forget it when it is refused, since the other one uses it', async () => {
    const { keys, one, other, reloaded } = share()
    const refusal = await one.begins()
    expect(await other.sends(done)).toMatchObject({ outcome: 'done' })
    expect(await refusal.ends(loggedOut)).toMatchObject({ outcome: 'unknown', response: { status: 401 } })
    await other.sends(replayed)
    await reloaded().sends(replayed)
    expect(new Set(keys.sent).size).toBe(1)
  })

  test('the one whose outcome is unknown keeps its key, though the other one has forgotten it', async () => {
    const { keys, one, other } = share()
    expect(await one.sends(hangUp)).toMatchObject({ outcome: 'unknown' })
    expect(await other.sends(done)).toMatchObject({ outcome: 'done' })
    await other.forget()
    expect(await one.sends(replayed)).toMatchObject({ outcome: 'done' })
    expect(new Set(keys.sent).size).toBe(1)
  })

  test('the one that goes on with a forgotten key stores it before it sends it, so that its page may be reloaded', async () => {
    const { keys, one, other, reloaded } = share()
    await one.sends(hangUp)
    await other.forget()
    await one.sends(hangUp)
    await reloaded().sends(done)
    expect(new Set(keys.sent).size).toBe(1)
  })

  test('a refusal that settles the operation is told, and the key stays for the other one', async () => {
    const { keys, one, other } = share()
    await other.sends(hangUp)
    expect(await one.sends(declined)).toMatchObject({ outcome: 'refused' })
    expect(await other.sends(done)).toMatchObject({ outcome: 'done' })
    expect(await one.sends(replayed)).toMatchObject({ outcome: 'done' })
    expect(new Set(keys.sent).size).toBe(1)
  })

  test('a refusal ends the key when nobody has joined: the other one starts anew', async () => {
    const { keys, one, other } = share()
    expect(await one.sends(loggedOut)).toMatchObject({ outcome: 'refused' })
    expect(keys.all.size).toBe(0)
    await other.sends(done)
    expect(new Set(keys.sent).size).toBe(2)
  })

  test('`forget` leaves the key of the new operation that the other one has begun meanwhile', async () => {
    const { keys, one, other } = share()
    await one.sends(done)
    await other.sends(replayed)
    await other.forget()
    await other.sends(hangUp)
    await one.forget()
    await one.sends(done)
    const [first, joined, second, third] = keys.sent
    expect([joined === first, second === first, third === second]).toEqual([true, false, true])
  })

  test('once both have forgotten, nothing is stored', async () => {
    const { keys, one, other } = share()
    await one.sends(done)
    await other.sends(replayed)
    await one.forget()
    await other.forget()
    expect([...keys.all]).toEqual([])
  })

  test('`forget` of an operation without a key leaves one whose name is `null`', async () => {
    const { keys, one, client } = share()
    keys.setItem('once-per-key:null', 'a key of another')
    await one.forget()
    await client.forget('undefined')
    expect([...keys.all.keys()]).toEqual(['once-per-key:null'])
  })

  test('the storage may take its time: `forget` rejects when the time is over, and holds no lock', async () => {
    const silent: KeyStorage = { ...trial.keyStorage(), getItem: () => new Promise<null>(() => {}) }
    const forgetting = createClient({ keys: silent, totalTimeoutMs: 1 }).forget(OPERATION)
    await expect(forgetting).rejects.toMatchObject({ name: 'TimeoutError' })
  })

  /** Clients whose tries end as each call says. */
  function share() {
    const all = trial.keyStorage()
    const sent: (string | null)[] = []
    const open = () => {
      let step: Step = done
      const client = createClient({
        keys: all,
        maxTries: 1,
        fetch: async (url, init = {}) => {
          const key = new Headers(init.headers).get('Idempotency-Key')
          sent.push(key)
          return step({ url: String(url), init, key, body: '', atMs: 0 })
        },
      })
      const sends = (next: Step): Promise<Outcome> => {
        step = next
        return client.send(OPERATION, URL_OF_PAYOUTS, { body: BODY })
      }
      /** A call whose try is under way until it is told how it ends. */
      const begins = async () => {
        const [underWay, ended] = [gate(), gate<Step>()]
        const call = sends(async (what) => {
          underWay.open()
          return (await ended.opened)(what)
        })
        await underWay.opened
        return {
          ends(how: Step) {
            ended.open(how)
            return call
          },
        }
      }
      return { sends, begins, forget: () => client.forget(OPERATION), client }
    }
    const one = open()
    return { keys: Object.assign(all, { sent }), one, other: open(), reloaded: open, client: one.client }
  }
})

const PARTS = Array.from({ length: 10 }, (_, part) => part)

describe('whatever the order in which clients over one storage are served, a payment is made once', () => {
  test.each(PARTS)('where the first key that is stored counts (%i)', async (part) => {
    for (let seed = part * 30; seed < part * 30 + 30; seed++) {
      const story = await explore(seed, { clients: 2, areStopped: false, hasLocks: false })
      expect(story.faults, story.log.join('\n')).toEqual([])
    }
  })

  test.each(PARTS)(
    'where the platform has locks, by three clients that may be stopped and replaced (%i)',
    async (part) => {
      for (let seed = part * 30; seed < part * 30 + 30; seed++) {
        const story = await explore(seed, { clients: 3, areStopped: true, hasLocks: true })
        expect(story.faults, story.log.join('\n')).toEqual([])
      }
    },
  )
})

interface World {
  readonly clients: number
  /** As a page is that is closed or loaded anew. */
  readonly areStopped: boolean
  readonly hasLocks: boolean
}

/** What waits for its turn: a command of a storage, a request on its way, or its reply. */
interface Event {
  readonly what: string
  readonly by: number
  readonly happen: () => void
}

/** Clients call `send` until they are done. The seed chooses what happens next, and what the service does. */
async function explore(seed: number, { clients, areStopped, hasLocks }: World) {
  const choices = choicesOf(seed, 'clients over one storage')
  const events: Event[] = []
  const log: string[] = []
  const faults: string[] = []
  const stored = new Map<string, string>()
  const paid = new Set<string>()
  const running = new Map<number, AbortController>()
  const mayForget = choices.happens(50)
  let started = 0
  let forgotten = 0
  if (hasLocks) stubLocks()

  const storageOf = (by: number): KeyStorage => {
    const inItsTurn = <Result>(what: string, work: () => Result) =>
      new Promise<Result>((resolve) => events.push({ what, by, happen: () => resolve(work()) }))
    return {
      getItem: (name) => inItsTurn(`reads ${name}`, () => stored.get(name) ?? null),
      setItem: (name, key) =>
        inItsTurn(`stores ${name}`, () => void ((hasLocks || !stored.has(name)) && stored.set(name, key))),
      removeItem: (name) => inItsTurn(`removes ${name}`, () => void stored.delete(name)),
    }
  }

  /** What the service does with a key: a guard refuses before anybody looks at it. */
  function serve(key: string): { status: number; headers?: Record<string, string> } | null {
    const way = choices.oneOf(['request lost', 'guard', 'refusal', 'success', 'success', 'reply lost'])
    log.push(`  ${way}, under the key ${key.slice(-4)}`)
    if (way === 'request lost') return null
    if (way === 'guard') return { status: 401 }
    const isReplay = paid.has(key)
    if (way === 'refusal' && !isReplay) return { status: 402 }
    paid.add(key)
    if (way === 'reply lost') return null
    return { status: 201, headers: isReplay ? { 'Idempotent-Replayed': 'true' } : {} }
  }

  async function run(by: number, { signal }: AbortController): Promise<void> {
    let wasPaid = false
    const fetch = (_url: unknown, init: RequestInit = {}) =>
      new Promise<Response>((resolve, reject) => {
        const key = new Headers(init.headers).get('Idempotency-Key') ?? ''
        const arrive = () => {
          const answer = serve(key)
          const reply = () => (answer ? resolve(new Response(null, answer)) : reject(new TypeError('fetch failed')))
          wasPaid = paid.has(key)
          if (!signal.aborted) events.push({ what: `gets ${answer?.status}`, by, happen: reply })
        }
        events.push({ what: `sent ${key.slice(-4)}`, by: 0, happen: arrive })
      })
    const client = createClient({ keys: storageOf(by), maxTries: 1, fetch: fetch as typeof globalThis.fetch })
    for (let calls = 0; calls < 3; calls++) {
      const { outcome } = await client.send(OPERATION, URL_OF_PAYOUTS, { signal })
      if (signal.aborted) return
      log.push(`  client ${by} is told: ${outcome}`)
      if (outcome === 'refused' && wasPaid)
        faults.push(`client ${by} is told of a refusal, though the payment was made`)
      if (outcome !== 'done') continue
      if (mayForget) {
        forgotten++
        await client.forget(OPERATION)
      }
      return
    }
  }

  function start(): void {
    const by = ++started
    const stop = new AbortController()
    running.set(by, stop)
    page
      .run(stop.signal, () => run(by, stop))
      .catch((error) => void faults.push(`client ${by}: ${error}`))
      .finally(() => running.delete(by))
  }

  for (let i = 0; i < clients; i++) start()
  for (;;) {
    for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve))
    if (events.length === 0) break
    const victim = [...running.keys()][choices.between(0, running.size - 1)] ?? 0
    if (areStopped && started < 6 && victim > 0 && choices.happens(5)) {
      log.push(`client ${victim} is stopped, and another one takes its place`)
      running.get(victim)?.abort()
      running.delete(victim)
      events.splice(0, events.length, ...events.filter(({ by }) => by !== victim))
      start()
      continue
    }
    const [next] = events.splice(choices.between(0, events.length - 1), 1)
    log.push(`client ${next?.by} ${next?.what}`)
    next?.happen()
  }
  if (running.size > 0) faults.push('A call has not ended.')
  if (paid.size > 1 + forgotten)
    faults.push(`${paid.size} payments were made, and ${forgotten} times a key was forgotten.`)
  return { faults, log }
}

/** Whose code it is: aborted when the page is closed. */
const page = new AsyncLocalStorage<AbortSignal>()

/** Locks as a browser has them: one queue for each name, and a page that is closed holds none. */
function stubLocks(): void {
  const held = new Map<string, Promise<unknown>>()
  const request = (name: string, work: () => Promise<unknown>) => {
    const signal = page.getStore()
    const closed = new Promise((resolve) => signal?.addEventListener('abort', resolve))
    const before = held.get(name) ?? Promise.resolve()
    const turn = before.then(() => (signal?.aborted ? undefined : work()))
    held.set(
      name,
      before.then(() => Promise.race([closed, turn.catch(() => {})])),
    )
    return turn
  }
  vi.stubGlobal('navigator', { locks: { request } })
  onTestFinished(() => void vi.unstubAllGlobals())
}
