import type { RequestListener } from 'node:http'
import axios from 'axios'
import axiosRetry from 'axios-retry'
import { createClient } from 'once-per-key/client'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { startService } from '../../../test/examples/payments-service.js'
import { listen } from '../../../test/support/bindings.js'
import { choicesOf } from '../../../test/support/choices.js'
import { type Loss, startFaultProxy } from '../../../test/support/fault-proxy.js'
import { retryingAxios } from '../../recipes/clients/axios.js'
import { retryingGot } from '../../recipes/clients/got.js'
import { retryingKy } from '../../recipes/clients/ky.js'

const PATH = 'api/service/payout/create'
const BODY = { amount: 5_000, currency: 'EUR' }
const PAYMENTS = 25
/** In place of the recipes' first pause; what `Retry-After` says is waited for all the same. */
const PAUSE_MS = 5

interface Answer {
  readonly status: number
  readonly replayed: boolean
  readonly id?: string
}

/** Sends one POST, by a recipe, until its outcome is known. */
type Pay = (key: string, body: object, headers: Record<string, string>) => Promise<Answer>

interface Recipe {
  readonly name: string
  open(origin: string, timeLimitMs: number): Pay
}

const recipes: readonly Recipe[] = [
  {
    name: 'axios',
    open(origin, timeLimitMs) {
      const client = retryingAxios(origin)
      const retryDelay = (count: number, error: Parameters<typeof axiosRetry.exponentialDelay>[1]) =>
        axiosRetry.exponentialDelay(count, error, PAUSE_MS)
      return async (key, body, headers) => {
        const given = { headers: { ...headers, 'Idempotency-Key': key }, timeout: timeLimitMs }
        const sent = client.post(PATH, body, { ...given, 'axios-retry': { retryDelay } })
        const {
          status,
          data,
          headers: told,
        } = await sent.catch((error: unknown) => {
          if (axios.isAxiosError(error) && error.response !== undefined) return error.response
          throw error
        })
        return { status, id: data.id, replayed: told['idempotent-replayed'] === 'true' }
      }
    },
  },
  {
    name: 'got',
    open(origin, timeLimitMs) {
      const quick = { retry: { backoffLimit: PAUSE_MS }, timeout: { request: timeLimitMs } }
      const client = retryingGot(origin).extend({ ...quick, throwHttpErrors: false, responseType: 'json' })
      return async (key, json, headers) => {
        const response = await client.post<{ id: string }>(PATH, {
          json,
          headers: { ...headers, 'Idempotency-Key': key },
        })
        const { statusCode: status, body } = response
        return { status, id: body.id, replayed: response.headers['idempotent-replayed'] === 'true' }
      }
    },
  },
  {
    name: 'ky',
    open(origin, timeLimitMs) {
      const client = retryingKy(origin).extend({ retry: { backoffLimit: PAUSE_MS }, timeout: timeLimitMs })
      return async (key, json, headers) => {
        const sent = client.post<{ id: string }>(PATH, { json, headers: { ...headers, 'Idempotency-Key': key } })
        const response = await sent.catch((error) => error.response ?? Promise.reject(error))
        const { id } = await response.json()
        return { status: response.status, id, replayed: response.headers.get('idempotent-replayed') === 'true' }
      }
    },
  },
  {
    name: 'once-per-key/client',
    open(origin, tryTimeoutMs) {
      const client = createClient({ keys: (operation) => operation, tryTimeoutMs, maxTries: 9 })
      return async (key, body, headers) => {
        const end = await client.send(key, `${origin}/${PATH}`, {
          headers: { ...headers, 'Content-Type': 'application/json' },
          body: JSON.stringify(body),
        })
        if (end.response === undefined) throw new Error(`The outcome of ${key} is ${end.outcome}`)
        const { id } = (await end.response.json()) as { id: string }
        return { status: end.response.status, id, replayed: end.outcome === 'done' && end.replayed }
      }
    },
  },
]

describe.each(recipes)('by $name', ({ open, name }) => {
  test('where 30 % of requests and of answers are lost, each payment is made once, and answered', async () => {
    const { service, proxy, headers, runs } = await start()
    const tries = new Map<string, number>()
    const lost: (Loss | undefined)[] = []
    proxy.loseWhat((request) => {
      const [key = ''] = /order-\d+/.exec(request) ?? []
      const nth = (tries.get(key) ?? 0) + 1
      tries.set(key, nth)
      const choices = choicesOf(1, `${key} ${nth}`)
      const loss = choices.happens(30) ? 'the request' : choices.happens(30) ? 'its reply' : undefined
      lost.push(loss)
      return loss
    })
    const pay = open(`http://127.0.0.1:${proxy.port}`, 10_000)
    const keys = Array.from({ length: PAYMENTS }, (_, i) => `order-${i}`)
    const answers = await Promise.all(keys.map((key) => pay(key, BODY, headers)))

    expect(answers.map(({ status }) => status)).toEqual(keys.map(() => 201))
    expect(new Set(answers.map(({ id }) => id)).size).toBe(PAYMENTS)
    expect(await runs()).toBe(PAYMENTS)
    expect(answers.filter(({ replayed }) => replayed).length).toBeGreaterThan(0)
    for (const loss of ['the request', 'its reply'])
      expect([name, lost]).toEqual([name, expect.arrayContaining([loss])])
    expect(service.log.filter(({ msg }) => msg === 'completed')).toHaveLength(PAYMENTS)
  })

  test('an answer that breaks off is asked for again', async () => {
    const { proxy, headers, runs } = await start()
    const losses: (Loss | undefined)[] = ['the end of its reply']
    proxy.loseWhat(() => losses.shift())
    const answer = await open(`http://127.0.0.1:${proxy.port}`, 10_000)('order-1', BODY, headers)
    expect(answer).toMatchObject({ status: 201, replayed: true })
    expect(await runs()).toBe(1)
  })

  test('an answer that does not come in time is asked for again, as late as Retry-After says', async () => {
    const { service, proxy, headers, runs } = await start()
    const { entered, open: letIn } = service.hold()
    const paying = open(`http://127.0.0.1:${proxy.port}`, 250)('order-1', BODY, headers)
    await entered
    await vi.waitFor(() => expect(service.log.map(({ msg }) => msg)).toContain('in_flight'), { timeout: 4_000 })
    const toldAt = performance.now()
    letIn()
    expect(await paying).toMatchObject({ status: 201, replayed: true })
    expect(performance.now() - toldAt).toBeGreaterThan(900)
    expect(await runs()).toBe(1)
    expect(service.log.map(({ msg }) => msg)).toEqual(['claimed', 'in_flight', 'completed', 'replayed'])
  }, 15_000)

  test('a conflict of the operation’s own, which comes without advice, is not sent again', async () => {
    const { origin, seen } = await answering([409])
    expect(await open(origin, 10_000)('order-1', BODY, {})).toMatchObject({ status: 409 })
    expect(seen()).toBe(1)
  })

  test('what a gateway says of a time limit is sent again', async () => {
    const { origin, seen } = await answering([524, 201])
    expect(await open(origin, 10_000)('order-1', BODY, {})).toMatchObject({ status: 201 })
    expect(seen()).toBe(2)
  })

  test.each([
    { what: 'another body under the same key', body: { ...BODY, amount: 1 }, status: 409 },
    { what: 'a body that is not valid', body: { ...BODY, amount: -1 }, status: 400, key: 'order-2' },
  ])('$what is not sent again', async ({ body, status, key = 'order-1' }) => {
    const { proxy, headers } = await start()
    let requests = 0
    proxy.loseWhat(() => {
      requests++
      return undefined
    })
    const pay = open(`http://127.0.0.1:${proxy.port}`, 10_000)
    expect(await pay('order-1', BODY, headers)).toMatchObject({ status: 201 })
    expect(await pay(key, body, headers)).toMatchObject({ status })
    expect(requests).toBe(2)
  })
})

/** A call by each of the recipes, of which the fourth is in `trpc.test.ts`. */
const posts: Record<string, (origin: string, headers: Record<string, string>) => Promise<unknown>> = {
  axios: (origin, headers) => retryingAxios(origin).post(PATH, BODY, { headers, timeout: 200 }),
  got: (origin, headers) => retryingGot(origin).post(PATH, { json: BODY, headers, timeout: { request: 200 } }),
  ky: (origin, headers) => retryingKy(origin).post(PATH, { json: BODY, headers, timeout: 200 }),
}

// Each of the recipes sent a POST again that had no key: one call was paid four times.
describe.each(Object.entries(posts))('by %s', (_name, post) => {
  const ways: Record<string, RequestListener> = {
    'breaks the connection': (_req, res) => void res.destroy(),
    'answers with 500': (_req, res) => void res.writeHead(500).end(),
    'answers with 503 and Retry-After': (_req, res) => void res.writeHead(503, { 'Retry-After': '0' }).end(),
    'asks for a retry': (_req, res) => void res.writeHead(409, { 'X-Should-Retry': 'true' }).end(),
    'breaks off': (_req, res) => void res.writeHead(201, { 'Content-Length': '9' }).write('{}', () => res.destroy()),
    'is silent': () => {},
  }

  test.each(Object.keys(ways))('a POST without a key is sent once, to a service that pays and then %s', async (way) => {
    const { origin, payments } = await payingThen(ways[way] as RequestListener)
    await expect(post(origin, {})).rejects.toThrow()
    expect(payments).toEqual([undefined])
  })

  test.each(Object.keys(ways))('and with one it is sent again, under that key (%s)', async (way) => {
    const { origin, payments } = await payingThen(ways[way] as RequestListener)
    await post(origin, { 'idempotency-key': 'order-1' })
    expect(payments).toEqual(['order-1', 'order-1'])
  })
})

/** A service that pays, and fails then, but for the second time. */
async function payingThen(fail: RequestListener) {
  const payments: unknown[] = []
  const { port, close } = await listen((req, res) => {
    if (payments.push(req.headers['idempotency-key']) === 1) fail(req, res)
    else res.writeHead(201).end()
  })
  onTestFinished(close)
  return { origin: `http://127.0.0.1:${port}`, payments }
}

/** A service that answers with one status after the other. */
async function answering(statuses: readonly number[]) {
  let seen = 0
  const { port, close } = await listen((_req, res) => {
    res.writeHead(statuses[seen++] ?? 500, { 'Content-Type': 'application/json' }).end('{"id":"po_1"}')
  })
  onTestFinished(close)
  return { origin: `http://127.0.0.1:${port}`, seen: () => seen }
}

/** The payments example behind a proxy; its handlers are naive: no look at their books helps. */
async function start() {
  const service = await startService()
  const proxy = await startFaultProxy(Number(new URL(service.origin).port))
  onTestFinished(async () => {
    await proxy.close()
    await service.stop()
  })
  const headers = { Authorization: 'Bearer demo_acme', 'x-demo-operation': 'paid', 'x-demo-handler': 'naive' }
  const runs = async () => (await service.send('/demo/operations/paid', { method: 'GET' })).json.runs
  return { service, proxy, headers, runs }
}
