import { expect, onTestFinished, test } from 'vitest'
import { type Ledger, memoryLedger } from '../../examples/payments/ledger.js'
import { expectSuccess } from './operations-table.js'
import { startService } from './payments-service.js'

// Each `GET /operations` created what its samples name, and nothing was ever dropped: whoever polled the list filled the books.

const EXPIRE = '/api/service/order/expire'

test('GET /operations leaves no more in the books however often it is asked, and the samples of its latest lists work', async () => {
  const { ledger, entries } = countedLedger()
  const service = await startService({ ledger })
  onTestFinished(() => service.stop())
  for (let i = 0; i < 40; i++) await service.sample(EXPIRE)
  const held = entries()
  const body = await service.sample(EXPIRE)
  for (let i = 0; i < 31; i++) await service.sample(EXPIRE)
  expect(entries()).toBe(held)
  expectSuccess(await service.send(EXPIRE, { body }))
  await service.sample(EXPIRE, 'demo_globex')
  expect(entries()).toBeGreaterThan(held)
})

/** Books whose entries are counted. */
function countedLedger(): { readonly ledger: Ledger; entries(): number } {
  const inner = memoryLedger()
  const places = new Set<string>()
  const ledger: Ledger = {
    transaction: (merchantId, work) =>
      inner.transaction(merchantId, (books) =>
        work({
          get: (kind, id) => books.get(kind, id),
          put(kind, entry) {
            places.add(`${merchantId} ${kind} ${entry.id}`)
            books.put(kind, entry)
          },
          delete(kind, id) {
            places.delete(`${merchantId} ${kind} ${id}`)
            books.delete(kind, id)
          },
        }),
      ),
  }
  return { ledger, entries: () => places.size }
}
