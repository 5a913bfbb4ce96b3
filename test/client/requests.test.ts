import { createHash } from 'node:crypto'
import { createClient, memoryKeys } from 'once-per-key/client'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { listen } from '../support/bindings.js'

interface Received {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly type: string | undefined
  readonly accept: string | undefined
  readonly digest: string
}

/** A server that ends the first two tries without a response, and a client that does not wait. */
async function start() {
  const seen: Received[] = []
  const { port, close } = await listen(async (req, res) => {
    const digest = createHash('sha256')
      .update(Buffer.concat(await req.toArray()))
      .digest('hex')
    const { 'content-type': type, accept } = req.headers
    seen.push({ method: req.method, url: req.url, type, accept, digest })
    if (seen.length < 3) res.destroy()
    else res.writeHead(201).end()
  })
  onTestFinished(close)
  const random = vi.spyOn(Math, 'random').mockReturnValue(0)
  onTestFinished(() => random.mockRestore())
  const { send } = createClient({ keys: memoryKeys() })
  return { seen, send, origin: `http://127.0.0.1:${port}` }
}

const form = () => {
  const data = new FormData()
  data.append('amount', '100')
  data.append('receipt', new Blob(['%PDF']), 'receipt.pdf')
  return data
}

describe('each try sends the same bytes:', () => {
  test.each<{ name: string; body: NonNullable<RequestInit['body']>; type: RegExp }>([
    { name: 'a text', body: '{"amount":"1 €"}', type: /^text\/plain/ },
    { name: 'a form', body: new URLSearchParams({ amount: '100' }), type: /^application\/x-www-form-urlencoded/ },
    { name: 'a form of several parts, with one boundary', body: form(), type: /^multipart\/form-data; boundary=/ },
    { name: 'a Blob', body: new Blob([new Uint8Array(100_000)], { type: 'image/png' }), type: /^image\/png$/ },
    { name: 'bytes', body: new Uint8Array([0, 255, 10]), type: /^$/ },
  ])('$name', async ({ body, type }) => {
    const { seen, send, origin } = await start()
    expect(await send('pay', `${origin}/payouts?a=1`, { body })).toMatchObject({ outcome: 'done' })
    expect(seen).toHaveLength(3)
    expect(seen[0]).toMatchObject({ method: 'POST', url: '/payouts?a=1' })
    expect(seen[0]?.type ?? '').toMatch(type)
    expect(seen[1]).toEqual(seen[0])
    expect(seen[2]).toEqual(seen[0])
  })

  test('also where the caller uses its buffer for something else meanwhile', async () => {
    const { seen, send, origin } = await start()
    const body = new TextEncoder().encode('{"amount":100}')
    const call = send('pay', origin, { body })
    await vi.waitFor(() => expect(seen.length).toBeGreaterThan(0), { interval: 1 })
    body.fill(0)
    await call
    expect(new Set(seen.map(({ digest }) => digest)).size).toBe(1)
  })

  test('with the method and the headers of the caller', async () => {
    const { seen, send, origin } = await start()
    const headers = { 'Content-Type': 'application/json', Accept: 'text/csv' }
    await send('pay', new URL('/payouts/7', origin), { method: 'PATCH', headers, body: '{}' })
    expect(seen).toHaveLength(3)
    for (const one of seen) {
      expect(one).toMatchObject({ method: 'PATCH', url: '/payouts/7', type: 'application/json', accept: 'text/csv' })
    }
  })

  test('none, where there is no body', async () => {
    const { seen, send, origin } = await start()
    await send('pay', origin)
    expect(seen.map(({ type }) => type)).toEqual([undefined, undefined, undefined])
  })
})

test('the error of a body that is an object names JSON.stringify', async () => {
  const { send } = createClient({ keys: memoryKeys() })
  const body = { amount: 100 } as never
  await expect(send('pay', 'http://127.0.0.1/', { body })).rejects.toThrow(/JSON\.stringify/)
})

describe('misuse rejects with a TypeError, and neither makes a key nor sends anything:', () => {
  test.each<{ name: string; url?: unknown; init?: RequestInit | object }>([
    { name: 'a stream', init: { body: new Blob(['{}']).stream(), duplex: 'half' } },
    { name: 'what yields chunks', init: { body: (async function* () {})(), duplex: 'half' } },
    { name: 'a key of the caller’s', init: { headers: { 'idempotency-key': 'order-1001' } } },
    { name: 'a mode that drops the key', init: { mode: 'no-cors' } },
    { name: 'a Request, whose body can be read once', url: new Request('http://127.0.0.1/') },
    { name: 'an address that is none', url: 'http://' },
    { name: 'a header that is none', init: { headers: { 'a b': 'c' } } },
    { name: 'a body where the method has none', init: { method: 'GET', body: '{}' } },
    { name: 'an object as body, which `fetch` would send as [object Object]', init: { body: { amount: 100 } } },
    { name: 'an object of a class as body', init: { body: new (class Payment {})() } },
    { name: 'an array as body', init: { body: [100] } },
    { name: 'a number as body', init: { body: 0 } },
    { name: 'false as body', init: { body: false } },
    { name: 'a Map as body', init: { body: new Map() } },
    { name: 'an address that is undefined', url: null },
    { name: 'an address that is an object', url: { path: '/payouts' } },
    { name: 'a text where an object with the body belongs', init: '{"amount":100}' as never },
    { name: 'null', init: null as never }, // Nothing is left behind that rejects unseen, either.
  ])('$name', async ({ url = 'http://127.0.0.1/', init = {} }) => {
    const fetch = vi.fn()
    const setItem = vi.fn()
    const { send } = createClient({ keys: { getItem: () => null, setItem, removeItem() {} }, fetch })
    await expect(send('pay', url as string, init)).rejects.toThrow(TypeError)
    expect(setItem).not.toHaveBeenCalled()
    expect(fetch).not.toHaveBeenCalled()
  })
})
