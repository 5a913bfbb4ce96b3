import {
  type FetchIdempotencyOptions,
  type IdempotencyEvent,
  idempotency,
  singleTenant,
  withoutBody,
} from 'once-per-key/fetch'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test, vi } from 'vitest'
import { failingStore } from '../support/failing-store.js'
import { gate } from '../support/gate.js'
import { takenOver } from '../support/taken-over.js'
import { heardWarnings } from '../support/warnings.js'

const URL_OF_PAYOUTS = 'https://api.example/payouts?a=1'

function payout(init: RequestInit & { key?: string } = {}): Request {
  const { key = 'k', headers, ...rest } = init
  const sent = new Headers({ 'Content-Type': 'application/json', 'Idempotency-Key': key })
  for (const [name, value] of new Headers(headers)) sent.set(name, value)
  return new Request(URL_OF_PAYOUTS, { method: 'POST', body: '{"amount":100}', ...rest, headers: sent })
}

function protection(options: FetchIdempotencyOptions | Partial<FetchIdempotencyOptions> = {}) {
  const events: IdempotencyEvent[] = []
  const onEvent = (event: IdempotencyEvent) => void events.push(event)
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant, ...options, onEvent })
  return { once, events, types: () => events.map(({ type }) => type) }
}

const replayed = (response: Response) => response.headers.get('Idempotent-Replayed') === 'true'
const codeOf = async (response: Response) => ((await response.json()) as { code: string }).code

describe('once(handler)', () => {
  test('gives the handler the very request, with its body, and what the platform passes', async () => {
    const seen: unknown[] = []
    const options = { scope: (_request: Request, env: { merchant: string }) => env.merchant }
    const handle = protection(options).once(async (request, context, env: { merchant: string }, more: number) => {
      seen.push(request, env, more)
      return Response.json({ scope: context?.scope, body: await request.json() })
    })
    const request = payout()
    const env = { merchant: 'acme' }
    expect(await (await handle(request, env, 7)).json()).toEqual({ scope: 'acme', body: { amount: 100 } })
    expect(seen[0]).toBe(request)
    expect(seen.slice(1)).toEqual([env, 7])
    expect(replayed(await handle(payout(), env, 7))).toBe(true)
    expect(replayed(await handle(payout(), { merchant: 'globex' }, 7))).toBe(false)
  })

  test('gives every option’s function the request, and what is passed behind it', async () => {
    const seen: [string, unknown][] = []
    const saw = <Result>(name: string, args: unknown[], result: Result): Result => {
      const [request, extra] = args.slice(-2)
      seen.push([name, request instanceof Request && extra])
      return result
    }
    const handle = protection({
      scope: (...args) => saw('scope', args, 'acme'),
      skip: (...args) => saw('skip', args, false),
      fingerprint: (...args) => saw('fingerprint', args, null),
      isSuccess: (_answer, ...args) => saw('isSuccess', args, false),
      firstSent: (...args) => saw('firstSent', args, undefined),
      isCertainFailure: (_answer, ...args) => saw('isCertainFailure', args, false),
      keepFailure: (_answer, ...args) => saw('keepFailure', args, false),
      streams: (_type, ...args) => saw('streams', args, false),
      renderProblem: (problem, ...args) => saw('renderProblem', args, { body: { code: problem.code } }),
    }).once(
      async (request, _context, _extra: string) =>
        new Response('no', { status: Number(request.headers.get('X-Status')) }),
    )
    await handle(payout({ headers: { 'X-Status': '503' } }), 'extra')
    await handle(payout({ method: 'PUT' }), 'extra')
    await handle(payout({ headers: { 'X-Status': '402' }, key: 'another' }), 'extra')
    const names = [
      ...['scope', 'skip', 'fingerprint', 'firstSent'],
      ...['isSuccess', 'isCertainFailure', 'keepFailure', 'streams', 'renderProblem'],
    ]
    expect(new Map(seen)).toEqual(new Map(names.map((name) => [name, 'extra'])))
  })

  test('needs the option `scope`', () => {
    const once = idempotency({ store: new MemoryStore() })
    expect(() => once(() => new Response())).toThrow(expect.objectContaining({ code: 'options_invalid' }))
  })
})

describe('once.handle', () => {
  test('takes the scope of each call', async () => {
    const once = idempotency({ store: new MemoryStore() })
    const handler = () => new Response('paid')
    expect(replayed(await once.handle(payout(), handler, { scope: 'acme' }))).toBe(false)
    expect(replayed(await once.handle(payout(), handler, { scope: 'globex' }))).toBe(false)
    expect(replayed(await once.handle(payout(), handler, { scope: 'acme' }))).toBe(true)
  })

  test.each([
    { what: 'nobody tells it', terms: {} },
    {
      what: 'it is told as undefined, whatever the option says',
      terms: { scope: undefined },
      options: { scope: singleTenant },
    },
  ])('is misuse where there is no scope: $what', async ({ terms, options }) => {
    const once = idempotency({ store: new MemoryStore(), ...options })
    let runs = 0
    const handling = once.handle(payout(), () => new Response(String(++runs)), terms as { scope: string })
    await expect(handling).rejects.toMatchObject({ code: 'scope_invalid' })
    expect(runs).toBe(0)
  })

  test('tells the platform what is pending: also a completion behind the answer', async () => {
    const store = failingStore()
    const stored = gate()
    store.next('complete', async (take) => {
      await stored.opened
      return take()
    })
    const { once } = protection({ store, storeTimeoutMs: 20, leaseMs: 10_000 })
    const pending: Promise<void>[] = []
    const terms = { waitUntil: (promise: Promise<void>) => void pending.push(promise) }
    const response = await once.handle(payout(), () => new Response('paid'), terms)
    expect(await response.text()).toBe('paid')
    let isOver = false
    const over = Promise.all(pending).then(() => {
      isOver = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(isOver).toBe(false)
    stored.open()
    await over
  })

  test('tells it of a handler that fails, too, and never rejects', async () => {
    const { once } = protection()
    const pending: Promise<void>[] = []
    const waitUntil = (promise: Promise<void>) => void pending.push(promise)
    const failing = once.handle(payout(), () => Promise.reject(new Error('no money')), { waitUntil })
    await expect(failing).rejects.toThrow('no money')
    expect(pending).not.toEqual([])
    expect(new Set(await Promise.all(pending))).toEqual(new Set([undefined]))
  })

  test('has the platform wait for the release of a claim that was given up', async () => {
    const store = failingStore()
    const released = gate()
    store.next('begin', () => Promise.reject(new Error('The store is away')))
    store.next('release', async (take) => {
      await released.opened
      return take()
    })
    const { once } = protection({ store })
    const pending: Promise<void>[] = []
    const refused = await once.handle(payout(), () => new Response('paid'), {
      waitUntil: (one) => void pending.push(one),
    })
    expect(refused.status).toBe(503)
    const over = Promise.all(pending)
    expect(await Promise.race([over, new Promise((resolve) => setImmediate(resolve, 'waits'))])).toBe('waits')
    released.open()
    await over
  })

  test('is misuse inside of itself', async () => {
    const { once, types } = protection()
    const request = payout()
    const inner = once.handle(request, (same) => once.handle(same, () => new Response('paid')))
    await expect(inner).rejects.toMatchObject({ code: 'mounted_twice' })
    expect(types()).toEqual(['claimed', 'failed'])
  })
})

test('all mistakes in the options are told in one error', () => {
  const wrong = { scope: 'acme', maxBodyBytes: 0, retries: 3 } as unknown as FetchIdempotencyOptions
  const { message } = thrownBy(() => idempotency(wrong))
  for (const name of ['store', 'scope', 'maxBodyBytes', 'retries']) expect(message).toContain(`${name}: `)
})

function thrownBy(act: () => unknown): Error {
  try {
    act()
  } catch (error) {
    return error as Error
  }
  throw new Error('It did not throw')
}

describe('a body', () => {
  test('that was read before is misuse', async () => {
    const { once } = protection()
    const request = payout()
    await request.text()
    await expect(once.handle(request, () => new Response())).rejects.toMatchObject({ code: 'raw_body_consumed' })
  })

  test('that somebody is reading is misuse, too', async () => {
    const { once } = protection()
    const request = payout()
    request.body?.getReader()
    await expect(once.handle(request, () => new Response())).rejects.toMatchObject({ code: 'raw_body_consumed' })
  })

  test('is not read where nothing depends on it: without a key, or where the fingerprint needs none', async () => {
    const { once } = protection({
      fingerprint: withoutBody((request: Request) => request.headers.get('Content-Digest')),
    })
    for (const headers of [{ 'Content-Digest': 'sha-256=:a:' }, { 'Idempotency-Key': '' }]) {
      let isRead = false
      const body = new ReadableStream(
        {
          pull() {
            isRead = true
          },
        },
        { highWaterMark: 0 },
      )
      const request = payout({ body, duplex: 'half', headers } as RequestInit)
      if (headers['Idempotency-Key'] === '') request.headers.delete('Idempotency-Key')
      expect(await (await once.handle(request, () => new Response('paid'))).text()).toBe('paid')
      expect(isRead).toBe(false)
    }
  })

  test('that is too large is read no further, and reaches a handler that is not protected whole', async () => {
    const { once } = protection({ maxBodyBytes: 10, skip: (request) => request.headers.get('X-Skip') === 'yes' })
    let pulled = 0
    const endless = () =>
      new ReadableStream(
        {
          pull(controller) {
            pulled++
            if (pulled > 20) controller.close()
            else controller.enqueue(new Uint8Array(4))
          },
        },
        { highWaterMark: 0 },
      )
    const refused = await once.handle(payout({ body: endless(), duplex: 'half' } as RequestInit), () => new Response())
    expect([refused.status, await codeOf(refused)]).toEqual([413, 'body_too_large'])
    expect(pulled).toBeLessThan(6)
    pulled = 0
    const skipped = payout({ body: endless(), duplex: 'half', headers: { 'X-Skip': 'yes' } } as RequestInit)
    const response = await once.handle(
      skipped,
      async (same) => new Response(String((await same.arrayBuffer()).byteLength)),
    )
    expect(await response.text()).toBe('80')
  })
})

describe('a body in very small pieces', () => {
  const inPieces = (byteLength: number) => {
    let sent = 0
    return new ReadableStream(
      {
        pull(controller) {
          if (sent++ === byteLength) controller.close()
          else controller.enqueue(new Uint8Array([0x31]))
        },
      },
      { highWaterMark: 0 },
    )
  }
  const small = (byteLength: number) => payout({ body: inPieces(byteLength), duplex: 'half' } as RequestInit)

  test.each([8_000, 16_000])('waits for the handler in a few: %i bytes', async (byteLength) => {
    const { once } = protection()
    const request = small(byteLength)
    let pieces = 0
    let read = 0
    const response = await once.handle(request, async (same) => {
      expect(same).toBe(request)
      for await (const piece of same.body as ReadableStream<Uint8Array>) {
        pieces++
        read += piece.byteLength
      }
      return new Response('paid')
    })
    expect([response.status, pieces, read]).toEqual([200, 1, byteLength])
  })

  test('is read by each of the request’s functions, once, and copied', async () => {
    const { once } = protection()
    const request = small(5_000)
    const response = await once.handle(request, async () => {
      const copy = await request.clone().text()
      expect(request.bodyUsed).toBe(false)
      expect(await request.text()).toBe(copy)
      expect(request.bodyUsed).toBe(true)
      await expect(request.text()).rejects.toThrow(TypeError)
      return new Response(String(copy.length))
    })
    expect(await response.text()).toBe('5000')
    expect(replayed(await once.handle(payout({ body: '1'.repeat(5_000) }), () => new Response()))).toBe(true)
  })

  test('reaches an unprotected handler whole where it is too large', async () => {
    const { once } = protection({ maxBodyBytes: 5_000, skip: () => true })
    const response = await once.handle(small(9_000), async (same) => new Response(String((await same.text()).length)))
    expect(await response.text()).toBe('9000')
  })
})

describe('a `waitUntil` that fails', () => {
  const fails = () => {
    throw new TypeError('Illegal invocation')
  }
  test.each<{ what: string; waitUntil: unknown }>([
    { what: 'it throws', waitUntil: fails },
    { what: 'it rejects', waitUntil: async () => fails() },
    { what: 'it is no function', waitUntil: {} },
  ])('changes nothing: $what', async ({ waitUntil }) => {
    const { once, types } = protection()
    const terms = { waitUntil } as { waitUntil: () => void }
    const first = await once.handle(payout(), () => new Response('paid'), terms)
    const second = await once.handle(payout(), () => new Response('again'), terms)
    expect([await first.text(), await second.text()]).toEqual(['paid', 'paid'])
    expect(types()).toEqual(['claimed', 'completed', 'replayed'])
  })

  test('is warned of once', async () => {
    vi.resetModules()
    const fresh = await import('once-per-key/fetch')
    const warnings = heardWarnings()
    const once = fresh.idempotency({ store: new MemoryStore(), scope: fresh.singleTenant })
    const waitUntil = () => {
      throw new TypeError('Called without its object')
    }
    await once.handle(payout(), () => new Response('paid'), { waitUntil })
    await once.handle(payout(), () => new Response('paid'), { waitUntil })
    await new Promise((resolve) => setImmediate(resolve))
    const told = warnings.filter(({ message }) => message.includes('Called without its object'))
    expect(told.map(({ code }) => code)).toEqual(['ONCE_PER_KEY_WAIT_UNTIL_FAILED'])
  })
})

describe('a key in two lines', () => {
  const withLines = (...lines: string[]) => {
    const request = payout()
    request.headers.delete('Idempotency-Key')
    for (const line of lines) request.headers.append('Idempotency-Key', line)
    return request
  }

  test.each([[['a', 'b']], [['a', 'a']], [['"a"', '"b"']], [['a, b']], [['', 'a']]])(
    'is refused: %j',
    async (lines) => {
      const { once, types } = protection()
      const refused = await once.handle(withLines(...lines), () => new Response('paid'))
      expect([refused.status, await codeOf(refused)]).toEqual([400, 'key_invalid'])
      expect(types()).toEqual(['rejected'])
    },
  )

  test.each(['a,b', '"a, b"', '"a,b"'])('is not what one key with a comma is: %s', async (line) => {
    const { once } = protection()
    expect(await (await once.handle(withLines(line), (_request, run) => new Response(run?.key))).text()).toBe(
      line.replaceAll('"', ''),
    )
  })
})

describe('a target', () => {
  test('counts with its query, and without its fragment or origin', async () => {
    const { once } = protection()
    const send = async (url: string) => once.handle(new Request(url, payout()), () => new Response('paid'))
    await send('https://api.example/payouts?a=1')
    expect(replayed(await send('https://other.example:8443/payouts?a=1#receipt'))).toBe(true)
    expect(await codeOf(await send('https://api.example/payouts?a=2'))).toBe('mismatched')
  })
})

describe('what a handler answers', () => {
  test('with a Response that it throws counts as its answer', async () => {
    const { once } = protection()
    const handler = () => {
      throw new Response(null, { status: 303, headers: { Location: '/receipts/17' } })
    }
    const thrown: unknown = await once.handle(payout(), handler).catch((error: unknown) => error)
    expect((thrown as Response).status).toBe(303)
    const replay = await once.handle(payout(), handler)
    expect([replay.status, replay.headers.get('Location'), replayed(replay)]).toEqual([303, '/receipts/17', true])
  })

  test.each([
    { what: 'nothing', answer: () => undefined },
    { what: 'an object', answer: () => ({ status: 200 }) },
  ])('with $what is an error, and leaves the outcome unknown', async ({ answer }) => {
    const { once, events } = protection()
    await expect(once.handle(payout(), answer as unknown as () => Response)).rejects.toThrow(
      /returned .*, not a Response/,
    )
    expect(events).toContainEqual(expect.objectContaining({ type: 'failed', uncertain: true }))
  })

  test('with Response.error(), or one that was read, has left the outcome unknown, and is passed on', async () => {
    for (const answer of [Response.error(), new Response('paid')]) {
      if (answer.body !== null) await answer.text()
      const { once, types } = protection()
      expect(await once.handle(payout(), () => answer)).toBe(answer)
      expect(types()).toEqual(['claimed', 'failed'])
    }
  })

  test('with a stream of text counts as its UTF-8', async () => {
    const { once } = protection()
    const text = () => new Response(ReadableStream.from(['paid: ', '7 €']) as ReadableStream<never>)
    expect(await (await once.handle(payout(), text)).text()).toBe('paid: 7 €')
    const replay = await once.handle(payout(), text)
    expect([replayed(replay), await replay.text()]).toEqual([true, 'paid: 7 €'])
  })

  test('with a stream of anything but bytes or text has failed', async () => {
    const { once, types } = protection()
    const numbers = () => new Response(ReadableStream.from([7]) as unknown as ReadableStream<never>)
    await expect(once.handle(payout(), numbers)).rejects.toThrow(TypeError)
    expect(types()).toEqual(['claimed', 'failed'])
  })

  test('to HEAD has no body', async () => {
    const { once } = protection({ methods: ['HEAD'] })
    const send = () => once.handle(payout({ method: 'HEAD', body: null }), () => new Response('never sent'))
    expect([(await send()).body, (await send()).body]).toEqual([null, null])
  })

  test('with a length it keeps the last byte back until its record was completed', async () => {
    const store = failingStore()
    const completed = gate()
    store.next('complete', async (take) => {
      await completed.opened
      return take()
    })
    const { once } = protection({ store, maxAnswerBytes: 2 })
    const pieces = async function* () {
      yield new Uint8Array([1, 2, 3])
      await new Promise((resolve) => setTimeout(resolve, 5))
      yield new Uint8Array([4, 5])
    }
    const headers = { 'Content-Length': '5' }
    const response = await once.handle(payout(), () => new Response(ReadableStream.from(pieces()), { headers }))
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    expect((await reader.read()).value).toEqual(new Uint8Array([1, 2, 3]))
    expect((await reader.read()).value).toEqual(new Uint8Array([4]))
    const last = reader.read()
    expect(await Promise.race([last, new Promise((resolve) => setImmediate(resolve, 'waits'))])).toBe('waits')
    completed.open()
    expect((await last).value).toEqual(new Uint8Array([5]))
    expect((await reader.read()).done).toBe(true)
  })

  test.each([
    { completed: true, seen: [201, 'paid by another'] },
    { completed: false, seen: [409, expect.stringContaining('in_flight')] },
  ])('is replaced by what its record says, where another attempt has it: $seen.0', async ({ completed, seen }) => {
    const { once } = protection({ store: takenOver({ completed }) })
    const late = await once.handle(payout(), () => new Response('late'))
    expect([late.status, await late.text()]).toEqual(seen)
  })
})

test('a client that has left while its duplicate waited is not waited for', async () => {
  const { once, types } = protection({ inFlightWaitMs: 10_000 })
  const end = gate()
  const first = once.handle(payout(), async () => {
    await end.opened
    return new Response('no', { status: 500 })
  })
  const left = new AbortController()
  const second = once.handle(payout({ signal: left.signal }), () => new Response('never'))
  await new Promise((resolve) => setImmediate(resolve))
  left.abort()
  end.open()
  await first
  await second
  await once.idle()
  expect(types().filter((type) => type === 'completed')).toEqual([])
})
