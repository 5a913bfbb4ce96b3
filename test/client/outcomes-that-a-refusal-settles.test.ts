import { type ClientOptions, createClient } from 'once-per-key/client'
import { MemoryStore } from 'once-per-key/memory'
import { expect, onTestFinished, test, vi } from 'vitest'
import { payoutsApp } from '../../examples/recipes/payouts-app.js'
import { listen } from '../support/bindings.js'
import { type Loss, startFaultProxy } from '../support/fault-proxy.js'
import { keyStorage } from './trial.js'

// After one try whose end it had not seen, the client (a recipe then) said `unknown` for ever: of each refusal that followed, it
// took no word, and its user could neither correct the payment nor give it up.

const OPERATION = 'pay order-1001'

test.each(['the request', 'its reply'] as const)(
  'where %s was lost and the retry is refused by the operation, the outcome is a refusal, and the key is given up',
  async (loss) => {
    const { post, lose, keys, bank } = await start()
    bank.transfer.mockRejectedValue(Object.assign(new Error('The account is closed'), { status: 422 }))
    lose([loss])
    expect(await post()).toMatchObject({ outcome: 'refused', response: { status: 422 } })
    expect(keys.all.size).toBe(0)

    bank.transfer.mockResolvedValue({ id: 'po_1' })
    expect(await post({ amount: 200 })).toMatchObject({ outcome: 'done', response: { status: 201 } })
  },
)

test('where the answer of a success was lost, what follows is the success, whatever the body would be told now', async () => {
  const { post, lose, bank } = await start()
  lose(['its reply', 'its reply', 'its reply'])
  expect(await post()).toMatchObject({ outcome: 'unknown' })
  bank.transfer.mockRejectedValue(Object.assign(new Error('The account is closed'), { status: 422 }))
  expect(await post()).toMatchObject({ outcome: 'done', response: { status: 201 } })
  expect(bank.transfer).toHaveBeenCalledTimes(1)
})

test('where the answer of a success was lost, a changed body settles nothing', async () => {
  const { post, lose, keys } = await start()
  lose(['its reply', 'its reply', 'its reply'])
  expect(await post()).toMatchObject({ outcome: 'unknown' })
  expect(await post({ amount: 200 })).toMatchObject({ outcome: 'unknown', response: { status: 409 } })
  expect(keys.all.size).toBe(1)
})

test('a `settles` that does not say true settles nothing: a promise is no word', async () => {
  const { post, lose, keys, bank } = await start({ settles: (async () => false) as never })
  bank.transfer.mockRejectedValue(Object.assign(new Error('The account is closed'), { status: 422 }))
  lose(['its reply'])
  expect(await post()).toMatchObject({ outcome: 'unknown', response: { status: 422 } })
  expect(keys.all.size).toBe(1)
})

/** A client, and a service with the middleware, apart by a network that loses what it is told to lose. */
async function start(options: Partial<ClientOptions> = {}) {
  const bank = { transfer: vi.fn(async () => ({ id: 'po_1' })) }
  const { app } = payoutsApp({ store: new MemoryStore(), bank })
  const service = await listen(app)
  const proxy = await startFaultProxy(service.port)
  onTestFinished(async () => {
    await proxy.close()
    await service.close()
  })
  const keys = keyStorage()
  const random = vi.spyOn(Math, 'random').mockReturnValue(0) // no pause
  onTestFinished(() => random.mockRestore())
  const client = createClient({ keys, maxTries: 3, ...options })
  const headers = { Authorization: 'Bearer demo_acme', 'Content-Type': 'application/json' }
  const url = `http://127.0.0.1:${proxy.port}/payouts`
  return {
    bank,
    keys,
    post: (body = { amount: 100 }) => client.send(OPERATION, url, { headers, body: JSON.stringify(body) }),
    lose(losses: Loss[]) {
      proxy.loseWhat(() => losses.shift())
    },
  }
}
