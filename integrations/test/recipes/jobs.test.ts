import { setImmediate } from 'node:timers/promises'
import { Queue, QueueEvents, type Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { MemoryStore } from 'once-per-key/memory'
import { PostgresStore } from 'once-per-key/postgres'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Invoice, invoiceSender } from '../../../examples/recipes/jobs/invoices.js'
import { bookTransfers, type EachMessage, type Transfer } from '../../../examples/recipes/jobs/kafka.js'
import { outboxRelay } from '../../../examples/recipes/jobs/outbox.js'
import { type Order, orderConsumer } from '../../../examples/recipes/jobs/sqs.js'
import { openPool, openStore } from '../../../test/adapters/postgres/open-store.js'
import { gate } from '../../../test/support/gate.js'
import { startRedis } from '../../../test/support/redis-server.js'
import { type WorkerParts as Parts, type Payout, payoutWorker } from '../../recipes/jobs/bullmq.js'
import { settlement } from '../../recipes/jobs/node-cron.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

describe('invoices', () => {
  const invoice: Invoice = { merchant: 'acme', id: 'in_7', cents: 500 }

  test('each is sent once, and each caller gets the same', async () => {
    const keys: string[] = []
    const send = invoiceSender(new MemoryStore(), async (_invoice, key) => ({ messageId: `m_${keys.push(key)}` }))
    const first = await send(invoice)
    expect(first).toMatchObject({ messageId: 'm_1', sentAt: expect.any(String) })
    expect(await send(invoice)).toEqual(first)
    await expect(send({ ...invoice, cents: 501 })).rejects.toMatchObject({ code: 'mismatched' })
  })
})

describe('BullMQ', async () => {
  const server = await startRedis()
  const client = new Redis(server.url)
  afterAll(async () => {
    client.disconnect()
    await server.close()
  })
  const connection = { host: '127.0.0.1', port: server.port, maxRetriesPerRequest: null }
  const store = new RedisStore({ client })

  /** A queue, and workers on it until the test ends. */
  async function queue() {
    const jobs = new Queue<Payout>('payouts', { connection })
    const events = new QueueEvents('payouts', { connection })
    await events.waitUntilReady()
    const workers: Worker[] = []
    onTestFinished(async () => {
      await Promise.all(workers.map((worker) => worker.close(true)))
      await events.close()
      await jobs.close()
    })
    const work = async (pay: Parts['pay'], settings: Parts['settings'] = {}) => {
      const worker = payoutWorker({ store, connection, pay, settings })
      worker.on('error', () => {})
      workers.push(worker)
      await worker.waitUntilReady()
    }
    return { jobs, events, work }
  }

  test('a stalled job that runs twice pays once, and the second run gets the first one’s result', async () => {
    const { jobs, events, work } = await queue()
    const [paying, bank] = [gate(), gate()]
    const paid: string[] = []
    // It goes on, but its lock runs out, as where a process is stopped for too long.
    const stalls = { lockDuration: 500, skipLockRenewal: true, stalledInterval: 300 }
    await work(async (_payout, key) => {
      paid.push(key)
      paying.open()
      await bank.opened
      return { id: 'po_1' }
    }, stalls)
    const job = await jobs.add('payout', { order: 'order-1', merchant: 'acme', amount: 5 })
    await paying.opened
    const delayed = new Promise((resolve) => events.on('delayed', resolve))
    const stalled = new Promise((resolve) => events.on('stalled', resolve))
    await work(
      async (_payout, key) => {
        paid.push(key)
        return { id: 'po_2' }
      },
      { stalledInterval: 300 },
    )
    await stalled
    await delayed // The second worker has met the first one's run, and looks again later.
    bank.open()
    expect(await job.waitUntilFinished(events)).toEqual({ id: 'po_1' })
    expect(paid).toHaveLength(1)
  })

  test('a job that fails is tried again, and told so to the bank by one key', async () => {
    const { jobs, events, work } = await queue()
    const keys: string[] = []
    await work(async (_payout, key) => {
      keys.push(key)
      if (keys.length === 1) throw new Error('timed out')
      return { id: 'po_1' }
    })
    const job = await jobs.add('payout', { order: 'order-2', merchant: 'acme', amount: 5 }, { attempts: 2 })
    expect(await job.waitUntilFinished(events)).toEqual({ id: 'po_1' })
    expect(keys).toEqual([keys[0], keys[0]])
  })

  test('a payout that its producer has added twice is paid once, although the jobs have two ids', async () => {
    const { jobs, events, work } = await queue()
    const paid: string[] = []
    await work(async (_payout, key) => ({ id: `po_${paid.push(key)}` }))
    const payout = { order: 'order-4', merchant: 'acme', amount: 5 }
    const first = await jobs.add('payout', payout)
    expect(await first.waitUntilFinished(events)).toEqual({ id: 'po_1' })
    const again = await jobs.add('payout', payout)
    expect(again.id).not.toBe(first.id)
    expect(await again.waitUntilFinished(events)).toEqual({ id: 'po_1' })
    expect(paid).toHaveLength(1)
  })

  test('a job whose order was used for another payout fails for good', async () => {
    const { jobs, events, work } = await queue()
    await work(async () => ({ id: 'po_1' }))
    const payout = { order: 'order-3', merchant: 'acme' }
    await (await jobs.add('payout', { ...payout, amount: 5 }, { attempts: 5 })).waitUntilFinished(events)
    const other = await jobs.add('payout', { ...payout, amount: 6 }, { attempts: 5 })
    await expect(other.waitUntilFinished(events)).rejects.toThrow('The key was used with another input')
    expect(await jobs.getJob(`${other.id}`)).toMatchObject({ attemptsMade: 1 })
  })
})

describe('a queue with a visibility time-out', () => {
  /** In the place of SQS: a message is invisible while somebody has it, and comes back unless it is deleted. */
  function fakeQueue(...orders: Order[]) {
    const messages = orders.map((order, i) => ({
      MessageId: `m${i}`,
      ReceiptHandle: `r${i}`,
      Body: JSON.stringify(order),
    }))
    const visibility: number[] = []
    let invisible = new Set<string>()
    return {
      visibility,
      left: () => messages.length,
      timeOut: () => {
        invisible = new Set()
      },
      receive: async () => {
        const seen = messages.filter(({ ReceiptHandle }) => !invisible.has(ReceiptHandle))
        for (const { ReceiptHandle } of seen) invisible.add(ReceiptHandle)
        return seen
      },
      delete: async (handle: string) => {
        messages.splice(
          messages.findIndex(({ ReceiptHandle }) => ReceiptHandle === handle),
          1,
        )
      },
      changeVisibility: async (_handle: string, seconds: number) => void visibility.push(seconds),
    }
  }
  const order = { merchant: 'acme', orderId: 'o_1' }

  test('a message that comes back while its order is shipped ships nothing', async () => {
    const queue = fakeQueue(order)
    const shipping = gate()
    const parcels: string[] = []
    const poll = orderConsumer(new MemoryStore(), queue, async ({ orderId }) => {
      parcels.push(orderId)
      await shipping.opened
      return { parcel: 'p_1' }
    })
    const first = poll()
    await vi.waitFor(() => expect(parcels).toHaveLength(1))
    queue.timeOut()
    await poll()
    expect(queue.visibility).toEqual([1])
    shipping.open()
    await first
    expect(queue.left()).toBe(0)
    expect(parcels).toEqual(['o_1'])
  })

  test('an order whose sender has sent it twice is shipped once', async () => {
    const queue = fakeQueue(order, order)
    const parcels: string[] = []
    const poll = orderConsumer(new MemoryStore(), queue, async ({ orderId }) => {
      parcels.push(orderId)
      return { parcel: 'p_1' }
    })
    await poll()
    expect(queue.left()).toBe(0)
    expect(parcels).toEqual(['o_1'])
  })

  test('an order that fails stays in the queue, and is shipped when it comes back', async () => {
    const queue = fakeQueue(order)
    let runs = 0
    const poll = orderConsumer(new MemoryStore(), queue, async () => {
      if (++runs === 1) throw new Error('no')
      return { parcel: 'p_1' }
    })
    await poll()
    expect([queue.left(), queue.visibility]).toEqual([1, []])
    queue.timeOut()
    await poll()
    expect([queue.left(), runs]).toEqual([0, 2])
  })
})

describe('KafkaJS', () => {
  /** In the place of a broker: a partition, which is read again from the last committed offset. */
  function partition(...transfers: Transfer[]): EachMessage[] {
    return transfers.map((transfer, i) => ({
      topic: 'transfers',
      partition: 0,
      message: { offset: `${i}`, value: Buffer.from(JSON.stringify(transfer)) },
    }))
  }
  const transfer = { account: 'acme', transferId: 't_1', cents: 500 }

  test('messages that are read again behind a rebalance are booked once', async () => {
    const store = new MemoryStore()
    const booked: string[] = []
    const consumers = [1, 2].map(() => bookTransfers(store, async ({ transferId }) => void booked.push(transferId)))
    for (const eachMessage of consumers) {
      for (const message of partition(transfer, { ...transfer, transferId: 't_2' })) await eachMessage(message)
    }
    expect(booked).toEqual(['t_1', 't_2'])
  })

  test('a message that fails is thrown, so that it is read again; another transfer under its id is not', async () => {
    const errors = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => errors.mockRestore())
    let runs = 0
    const eachMessage = bookTransfers(new MemoryStore(), async () => {
      if (++runs === 1) throw new Error('no')
    })
    const [message, other] = partition(transfer, { ...transfer, cents: 501 }) as [EachMessage, EachMessage]
    await expect(eachMessage(message)).rejects.toThrow('no')
    await eachMessage(message)
    await eachMessage(other)
    expect(runs).toBe(2)
    expect(errors).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'mismatched' }))
  })
})

describe('node-cron', () => {
  const at = (text: string) => new Date(text)

  test('a day is settled once, however many processes have the schedule', async () => {
    const store = new MemoryStore()
    const days: string[] = []
    const processes = [1, 2, 3].map(() =>
      settlement(store, async (day) => {
        days.push(day)
        return { settled: 7 }
      }),
    )
    const now = at('2026-11-22T02:00:00Z')
    await Promise.all(processes.map(({ run }) => run(now)))
    await processes[0]?.run(at('2026-11-22T02:10:00Z'))
    expect(days).toEqual(['2026-11-22'])
    await processes[1]?.run(at('2026-11-23T02:00:00Z'))
    expect(days).toEqual(['2026-11-22', '2026-11-23'])
  })

  test('a day that failed is tried again by the next', async () => {
    let runs = 0
    const { run } = settlement(new MemoryStore(), async () => {
      if (++runs === 1) throw new Error('no')
      return { settled: 7 }
    })
    await expect(run(at('2026-11-22T02:00:00Z'))).rejects.toThrow('no')
    await run(at('2026-11-22T02:10:00Z'))
    await run(at('2026-11-22T02:20:00Z'))
    expect(runs).toBe(2)
  })

  test('the schedule is one that node-cron takes', async () => {
    const task = settlement(new MemoryStore(), async () => ({ settled: 0 })).start()
    onTestFinished(() => void task.destroy())
    expect(await task.getStatus()).toMatch(/scheduled|idle/)
  })
})

describe('an outbox', async () => {
  const { pool, url, query } = await openStore()
  const transactions = openPool(url)
  const store = new PostgresStore({ pool, transactions, sweeps: false })
  await query('CREATE TABLE outbox (id bigserial PRIMARY KEY, message jsonb, sent_at timestamptz)')
  const add = (message: object) => query('INSERT INTO outbox (message) VALUES ($1)', [JSON.stringify(message)])
  const unsent = async () => (await query('SELECT id FROM outbox WHERE sent_at IS NULL')).length

  test('is relayed in its order while another relay is at its first message', async () => {
    for (const n of [1, 2, 3]) await add({ n })
    const published: unknown[] = []
    const { opened: mayPublish, open } = gate()
    const { opened: isPublishing, open: publishing } = gate()
    const slow = outboxRelay(pool, store, async (message) => {
      publishing()
      await mayPublish
      published.push(message)
    })
    const relaying = slow()
    await isPublishing
    await outboxRelay(pool, store, async (message) => void published.push(message))()
    expect(published).toEqual([])
    open()
    await relaying
    expect(published).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
    expect(await unsent()).toBe(0)
  })

  test('is relayed once and in its order by relays that overtake each other', async () => {
    for (let n = 0; n < 40; n++) await add({ n })
    const published: { readonly n: number }[] = []
    const relays = [1, 2, 3].map(() => {
      const own = new PostgresStore({ pool, transactions, sweeps: false })
      return outboxRelay(pool, own, async (message) => {
        await setImmediate()
        published.push(message as { readonly n: number })
      })
    })
    await Promise.all(
      relays.map(async (relay) => {
        while ((await unsent()) > 0) await relay()
      }),
    )
    expect(published.map(({ n }) => n)).toEqual(Array.from({ length: 40 }, (_, n) => n))
  })

  test('sends a message again whose sending failed, under the same key', async () => {
    await add({ n: 4 })
    const keys: string[] = []
    const relay = outboxRelay(pool, store, async (_message, key) => {
      keys.push(key)
      if (keys.length === 1) throw new Error('timed out')
    })
    await expect(relay()).rejects.toThrow('timed out')
    expect(await unsent()).toBe(1)
    await relay()
    expect(keys).toEqual([keys[0], keys[0]])
    expect(await unsent()).toBe(0)
  })
})
