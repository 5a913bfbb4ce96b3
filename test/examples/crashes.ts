import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { expectSameAnswer, expectSuccess } from './operations-table.js'
import type { Sent, Service } from './payments-service.js'

const CRASH = { 'x-demo-crash': 'true' }

/** What holds on all that the records may stand on: an order in steps goes on after the charge. */
export function resumesOrders(opened: () => Service): void {
  test('an owner of an order in steps that dies after its charge: the retry does not charge again', async () => {
    const { crash, send, runs } = named(opened(), '/api/service/order/create', { 'x-demo-handler': 'steps' })
    await expect(crash()).rejects.toThrow()
    expect(await runs()).toBe(1)
    const retry = await send()
    expectSuccess(retry)
    expect(retry.headers.get('x-demo-outcome')).toBe('resumed')
    expect(await runs()).toBe(1)
    expectSameAnswer(await send(), retry)
  })
}

/** What holds where the books are in one database with the records: the handler can do without a claim. */
export function paysInOneTransaction(opened: () => Service): void {
  const IN_TRANSACTION = { 'x-demo-handler': 'in-transaction' }
  const PATH = '/api/service/payout/create'

  test.each([PATH, '/api/service/fx/execute'])(
    '%s in one transaction: an owner that dies leaves nothing, and the retry runs at once, as the first attempt',
    async (path) => {
      const service = opened()
      const { crash, send, runs, key } = named(service, path, IN_TRANSACTION)
      let isGone = false
      const { entered, open } = service.hold()
      const gone = expect(crash())
        .rejects.toThrow()
        .finally(() => {
          isGone = true
        })
      await entered
      open()
      // Its connection is still open: nobody else could know that it is dead.
      const retry = await send()
      expectSuccess(retry)
      expect(isGone).toBe(false)
      expect(await runs()).toBe(1)
      await gone
      await service.idle()
      expectSameAnswer(await send(), retry)
      expect(await runs()).toBe(1)
      expect(service.log.filter((line) => line.key === key)).toMatchObject([
        { msg: 'claimed', attempt: 1, previousOutcome: 'none' },
        { msg: 'completed', attempt: 1 },
        { msg: 'replayed' },
      ])
    },
  )

  test('ten at once in one transaction pay once, and none of them is an error', async () => {
    const service = opened()
    const { send, runs } = named(service, PATH, IN_TRANSACTION)
    const before = service.log.length
    const statuses = (await Promise.all(Array.from({ length: 10 }, send))).map(({ status }) => status)
    expect(statuses).toContain(201)
    expect([201, 409]).toEqual(expect.arrayContaining(statuses))
    await service.idle()
    expectSuccess(await send())
    expect(await runs()).toBe(1)
    expect(service.log.slice(before).filter(({ level }) => Number(level) >= 40)).toEqual([])
  })

  test('a claimed key is respected in one transaction, and the other way round', async () => {
    const claimed = named(opened(), PATH, {})
    const first = await claimed.send()
    expectSameAnswer(await claimed.send(IN_TRANSACTION), first)
    const unclaimed = named(opened(), PATH, IN_TRANSACTION)
    const second = await unclaimed.send()
    expectSameAnswer(await unclaimed.send({ 'x-demo-handler': 'naive' }), second)
    expect([await claimed.runs(), await unclaimed.runs()]).toEqual([1, 1])
  })
}

/** One operation under a key, whose runs are counted. */
function named(service: Service, path: string, headers: Readonly<Record<string, string>>) {
  const key = randomUUID()
  const named = { ...headers, 'x-demo-operation': key }
  const body = path.includes('fx')
    ? { sellCurrency: 'EUR', buyCurrency: 'USD', sellAmount: 10_000 }
    : { amount: 7_500, currency: 'EUR' }
  const sent = (more: Sent['headers']) => service.send(path, { body, key, headers: { ...named, ...more } })
  return {
    key,
    crash: () => sent(CRASH),
    send: (more: Sent['headers'] = {}) => sent(more),
    runs: async () => (await service.send(`/demo/operations/${key}`, { method: 'GET' })).json.runs,
  }
}
