import { Buffer } from 'node:buffer'
import type { Answer, Store } from '../../core/index.js'
import { assertPromise } from '../seen.js'
import {
  assertProblem,
  type BindingLaw,
  createBindingLaw,
  createBindingLaws,
  createTrialStore,
  type SeenReply,
} from './binding-bench.js'

const TWINS = 20
const ALL_BYTES = Uint8Array.from({ length: 256 }, (_, i) => i)

/** Who runs, what a handler receives, and what others get while it runs. */
export const runLaws: readonly BindingLaw[] = createBindingLaws({
  'run: a handler receives its body as it was sent, and the context of its run': async (serve) => {
    const seen: unknown[] = []
    const served = await serve(async ({ json, bytes, idempotency }) => {
      const body = idempotency?.key === 'json' ? await json() : [...(await bytes())]
      seen.push([body, idempotency?.key, idempotency?.scope, idempotency?.attempt, idempotency?.previousOutcome])
      return {}
    })
    await served.send({ key: 'json', json: { amount: 100, to: 'Zoë' } })
    await served.send({ key: 'bytes', bytes: ALL_BYTES, headers: [['Content-Type', 'application/octet-stream']] })
    const due = [
      [{ amount: 100, to: 'Zoë' }, 'json', 'acme', 1, 'none'],
      [[...ALL_BYTES], 'bytes', 'acme', 1, 'none'],
    ]
    assertPromise(seen, due, 'A handler receives its body and its context.')
  },

  'run: without a key, with a method that is not covered, or where `skip` says so, each request runs': async (
    serve,
  ) => {
    const contexts: unknown[] = []
    const served = await serve(
      ({ idempotency }) => {
        contexts.push(idempotency)
        return { text: 'run' }
      },
      { options: { skip: (header) => header('x-skip') === 'yes' } },
    )
    for (const sent of [{ key: null }, { method: 'GET' }, { headers: [['X-Skip', 'yes']] as const }]) {
      for (const reply of [await served.send(sent), await served.send(sent)]) {
        assertPromise(
          [reply.text, reply.listHeaderValues('Idempotent-Replayed')],
          ['run', []],
          'A request that is not covered passes.',
        )
      }
    }
    assertPromise(served.runs(), 6, 'A request that is not covered always runs.')
    assertPromise(new Set(contexts), new Set([undefined]), 'A handler of such a request has no context.')
  },

  'run: two scopes never meet': async (serve) => {
    const served = await serve(() => ({ text: 'paid' }), { options: { scope: (header) => header('x-merchant') } })
    for (const merchant of ['acme', 'globex']) {
      const reply = await served.send({ headers: [['X-Merchant', merchant]] })
      assertPromise(reply.listHeaderValues('Idempotent-Replayed'), [], 'A scope gets no answer of another.')
    }
    assertPromise(served.runs(), 2, 'A handler runs once for each scope.')
  },

  'run: a key is read as its client has sent it': async (serve) => {
    const seen: unknown[] = []
    const served = await serve(({ idempotency }) => {
      seen.push(idempotency?.key)
      return {}
    })
    // UTF-8 on the wire; a quoted key and the bare one are the same.
    for (const key of ['k', 'K', '"k"', '\u20ac 1']) {
      await served.send({ key: Buffer.from(key).toString('latin1') })
    }
    assertPromise(seen, ['k', 'K', '\u20ac 1'], 'A handler receives the key, and a retry of it does not run.')
  },

  [`race: of ${TWINS} identical requests at once one runs, and the others are told that it is in flight`]: async (
    serve,
  ) => {
    const end = createLatch()
    let arrived = 0
    // Whatever the binding does with a twin, the race ends: each one either runs or is answered.
    const arrives = () => ++arrived === TWINS && end.open()
    const served = await serve(async () => {
      arrives()
      await end.opened
      return { text: 'paid' }
    })
    const twin = async () => {
      const reply = await served.send()
      if (reply.status !== 200) arrives()
      return reply
    }
    const replies = await Promise.all(Array.from({ length: TWINS }, twin))
    assertPromise(served.runs(), 1, 'Of identical requests at once, one runs.')
    const refused = replies.filter(({ status }) => status !== 200)
    assertPromise(refused.length, TWINS - 1, 'The others are refused while it runs.')
    for (const refusal of refused) assertInFlight(refusal)
  },

  'race: a duplicate that waits gets the answer of the first': async (serve) => {
    const [started, end] = [createLatch(), createLatch()]
    let arrived = 0
    const scope = () => {
      // By the next turn of the event loop the second has been refused, if it does not wait.
      if (++arrived === 2) setImmediate(end.open)
      return 'acme'
    }
    const served = await serve(
      async () => {
        started.open()
        await end.opened
        return { text: 'paid' }
      },
      { options: { inFlightWaitMs: 60_000, scope } },
    )
    const first = served.send()
    await started.opened
    const second = served.send()
    assertPromise((await first).text, 'paid', 'The owner sends its answer.')
    assertPromise(
      (await second).listHeaderValues('Idempotent-Replayed'),
      ['true'],
      'A duplicate that has waited gets a replay.',
    )
    assertPromise(served.runs(), 1, 'A duplicate that waits does not run.')
  },

  'disconnect: a handler goes on when its client leaves, and a retry gets its answer': async (serve) => {
    const [started, end] = [createLatch(), createLatch()]
    const served = await serve(async ({ idempotency }) => {
      started.open()
      if (served.runs() === 1) await end.opened
      return { json: { aborted: idempotency?.signal.aborted } }
    })
    const client = new AbortController()
    const left = served.send({ signal: client.signal }).catch(() => null)
    await started.opened
    client.abort()
    const meanwhile = await served.send()
    end.open()
    assertInFlight(meanwhile)
    await left
    await served.idle()
    const replay = await served.send()
    assertPromise(replay.text, '{"aborted":false}', 'A client that leaves does not abort the run.')
    assertPromise(replay.listHeaderValues('Idempotent-Replayed'), ['true'], 'What was answered to nobody is replayed.')
    assertPromise(served.runs(), 1, 'A retry does not run again.')
  },
})

function assertInFlight(refusal: SeenReply): void {
  assertProblem(refusal, 409, 'in_flight', 'A duplicate is told that its request is in flight.')
  const advice = [/^[1-8]$/.test(refusal.findHeader('Retry-After') ?? ''), refusal.findHeader('X-Should-Retry')]
  const headers = Object.fromEntries(['Retry-After', 'X-Should-Retry'].map((name) => [name, refusal.findHeader(name)]))
  if (advice[0] !== true || advice[1] !== 'true') {
    assertPromise(headers, { 'Retry-After': '1 to 8', 'X-Should-Retry': 'true' }, 'A duplicate is told to come back.')
  }
}

function createLatch() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

// --- their ends

const ENDS = {
  'a success': { status: 200, command: 'complete' },
  'a refusal': { status: 422, command: 'release' },
  'an unknown outcome': { status: 503, command: 'release' },
  'a throw': { status: 500, command: 'release' },
} as const

/** The most that the default lease allows: a busy machine may take long for an exchange. */
const UNHURRIED_MS = 7_500

const OTHERS: Answer = {
  status: 202,
  statusMessage: '',
  headers: [['Content-Type', 'text/plain; charset=utf-8']],
  body: new TextEncoder().encode('paid by another'),
}

/** A response leaves after its run was settled, and is the one that the record allows. */
export const endLaws: readonly BindingLaw[] = [
  ...Object.entries(ENDS).map(([what, { status, command }]) =>
    createBindingLaw(`end: ${what} is sent after the store has confirmed it, not before`, async (serve) => {
      const [asked, confirmed] = [createLatch(), createLatch()]
      const inner = createTrialStore()
      const store: Store = {
        ...inner,
        [command]: async (key: string, own: never) => {
          asked.open()
          await confirmed.opened
          return inner[command](key, own)
        },
      }
      const handler = () => {
        if (what === 'a throw') throw new Error('no money')
        return { status, text: 'ended' }
      }
      const served = await serve(handler, { options: { store, storeTimeoutMs: UNHURRIED_MS } })
      let hasLeft = false
      const first = served.send().finally(() => {
        hasLeft = true
      })
      await Promise.race([asked.opened, first])
      // A whole exchange later, a response that had been sent would be here.
      const duplicate = await served.send()
      const seen = [hasLeft, duplicate.code]
      confirmed.open()
      assertPromise(seen, [false, 'in_flight'], 'Whoever has seen an end can send again at once.')
      assertPromise((await first).status, status, 'Then it is sent.')
    }),
  ),

  ...createBindingLaws({
    'end: where another attempt has completed the key, its answer is sent, and not the own one': async (serve) => {
      const store: Store = {
        ...createTrialStore(),
        complete: async (_, { fingerprint }) => {
          return { ok: false, record: { state: 'completed', fingerprint, attempt: 2, answer: OTHERS } }
        },
      }
      const served = await serve(() => ({ text: 'paid' }), { options: { store } })
      const reply = await served.send()
      const seen = [reply.status, reply.text, reply.listHeaderValues('Idempotent-Replayed')]
      assertPromise(seen, [202, 'paid by another', ['true']], 'Nobody is sent a success that no record holds.')
    },

    'end: where another attempt owns the key, 409 in_flight is sent, and not the own answer': async (serve) => {
      const store: Store = {
        ...createTrialStore(),
        complete: async (_, { fingerprint }) => {
          const record = {
            state: 'in-flight',
            fingerprint,
            attempt: 2,
            uncertain: true,
            leaseRemainingMs: 1_000,
          } as const
          return { ok: false, record }
        },
      }
      const served = await serve(() => ({ text: 'paid' }), { options: { store } })
      const reply = await served.send()
      assertProblem(reply, 409, 'in_flight', 'Nobody is sent a success that no record holds.')
    },
  }),
]
