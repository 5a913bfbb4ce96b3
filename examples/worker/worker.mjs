// REDIS_URL=redis://localhost:6379 npm start
// Adds a payout to the queue twice, as a producer does that got no answer, and works until it is told to stop (Ctrl+C).
import { DelayedError, Queue, UnrecoverableError, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { RefusedError, runner } from 'once-per-key/run'

const url = process.env.REDIS_URL ?? 'redis://localhost:6379'
const connection = new Redis(url, { maxRetriesPerRequest: null }) // BullMQ asks for it
const client = new Redis(url)
for (const each of [connection, client]) each.on('error', console.error)

const once = runner({ store: new RedisStore({ client }), name: 'payouts' })

/** Stands for a bank: it prints each payment. */
async function pay({ amount }, idempotencyKey) {
  console.log(`paying ${amount}`)
  return { id: `po_${idempotencyKey}` }
}

async function work(job, token) {
  const { merchant, order } = job.data
  try {
    return await once({ scope: merchant, key: order, input: job.data }, (context) =>
      pay(job.data, context.deriveKey('bank')),
    )
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error // tried again, as `attempts` says
    if (error.retryAfterMs === null) throw new UnrecoverableError(error.message)
    await job.moveToDelayed(Date.now() + error.retryAfterMs, token) // another worker is at it
    throw new DelayedError()
  }
}

const worker = new Worker('payouts', work, { connection, concurrency: 10 })
worker.on('completed', (job, { id }) => console.log(`job ${job.id}: ${id}`))
worker.on('failed', (job, error) => console.log(`job ${job?.id} failed: ${error.message}`))
worker.on('error', console.error)

const queue = new Queue('payouts', { connection })
const payout = { merchant: 'acme', order: 'order-1001', amount: 5000 }
await queue.addBulk([1, 2].map(() => ({ name: 'payout', data: payout, opts: { attempts: 5 } })))

async function stop() {
  await worker.close() // waits for the jobs at hand
  await once.idle()
  await queue.close()
  connection.disconnect()
  client.disconnect()
}
process.once('SIGINT', stop)
process.once('SIGTERM', stop)
