import { createClient, memoryKeys } from 'once-per-key/client'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startService } from '../examples/payments-service.js'
import { choicesOf } from '../support/choices.js'
import { type Loss, startFaultProxy } from '../support/fault-proxy.js'

const PAYMENTS = 200
const LOST_PERCENT = 30
const REQUESTS: readonly Loss[] = ['the request', 'half of the request']
const REPLIES: readonly Loss[] = ['its reply', 'the end of its reply']

test('where 30 % of requests and of responses are lost, 200 payments end with `done`, and the books hold each once', async () => {
  const { service, origin, lost } = await start()
  const client = createClient({ keys: memoryKeys(), maxTries: 40 })
  const orders = Array.from({ length: PAYMENTS }, (_, i) => `order-${i}`)
  const pay = (order: string) =>
    client.send(`pay ${order}`, `${origin}/api/service/payout/create`, {
      headers: {
        Authorization: 'Bearer demo_acme',
        'Content-Type': 'application/json',
        'x-demo-operation': order, // under which the books count it
        'x-demo-handler': 'naive', // a look into its books helps nobody
      },
      body: JSON.stringify({ amount: 5_000, currency: 'EUR', reference: order }),
    })
  const ends = await Promise.all(orders.map(pay))

  expect(ends.map(({ outcome }) => outcome)).toEqual(orders.map(() => 'done'))
  const runs = await Promise.all(
    orders.map(async (order) => (await service.send(`/demo/operations/${order}`, { method: 'GET' })).json.runs),
  )
  expect(runs).toEqual(orders.map(() => 1))
  const paid = await Promise.all(
    ends.map(({ response }) => response?.json() as Promise<{ id: string; reference: string }>),
  )
  expect(paid.map(({ reference }) => reference)).toEqual(orders)
  expect(new Set(paid.map(({ id }) => id)).size).toBe(PAYMENTS)

  // The network was that bad: each kind of loss struck often, and many responses had to be replayed.
  for (const loss of [...REQUESTS, ...REPLIES]) expect(lost.filter((each) => each === loss).length).toBeGreaterThan(20)
  expect(ends.filter((end) => end.outcome === 'done' && end.replayed).length).toBeGreaterThan(20)
}, 60_000)

/** The payments example behind a network that loses things. What is lost depends on the payment and on which of its tries it is. */
async function start() {
  const service = await startService()
  const proxy = await startFaultProxy(Number(new URL(service.origin).port))
  onTestFinished(async () => {
    await proxy.close()
    await service.stop()
  })
  // Pauses are short; what Retry-After says is waited for all the same.
  const random = vi.spyOn(Math, 'random').mockReturnValue(0.01)
  onTestFinished(() => random.mockRestore())

  const lost: (Loss | undefined)[] = []
  const tries = new Map<string, number>()
  proxy.loseWhat((request) => {
    const [order = ''] = /order-\d+/.exec(request) ?? []
    const nth = (tries.get(order) ?? 0) + 1
    tries.set(order, nth)
    const choices = choicesOf(1, `${order} ${nth}`)
    const struck = [REQUESTS, REPLIES].find(() => choices.happens(LOST_PERCENT))
    const loss = struck && choices.oneOf(struck)
    lost.push(loss)
    return loss
  })
  return { service, origin: `http://127.0.0.1:${proxy.port}`, lost }
}
