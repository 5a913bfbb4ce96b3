import { type ConnectionOptions, DelayedError, type Job, UnrecoverableError, Worker, type WorkerOptions } from 'bullmq'
import type { Store } from 'once-per-key/core'
import { RefusedError, runner } from 'once-per-key/run'

export interface Payout {
  /** Made by the sender, once for each payout: a job that is added twice has two ids, and a retried flow a new one. */
  readonly order: string
  readonly merchant: string
  readonly amount: number
}

export interface WorkerParts {
  readonly store: Store
  readonly connection: ConnectionOptions
  /** The call that must not be made twice; the bank knows a repeat by its key, too. */
  readonly pay: (payout: Payout, idempotencyKey: string) => Promise<{ readonly id: string }>
  readonly settings?: Omit<WorkerOptions, 'connection'>
}

/** A stalled job is given to another worker while the first may still run: it pays once all the same. */
export function payoutWorker({ store, connection, pay, settings }: WorkerParts): Worker<Payout> {
  const once = runner({ store, name: 'payouts' })

  async function work(job: Job<Payout>, token?: string): Promise<{ readonly id: string }> {
    const { merchant, order } = job.data
    try {
      return await once({ scope: merchant, key: order, input: job.data }, (context) =>
        pay(job.data, context.deriveKey('bank')),
      )
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error // BullMQ tries again, as `attempts` of the job says.
      if (error.retryAfterMs === null) throw new UnrecoverableError(error.message)
      await job.moveToDelayed(Date.now() + error.retryAfterMs, token) // Somebody else runs it: look again later.
      throw new DelayedError()
    }
  }
  return new Worker<Payout>('payouts', work, { ...settings, connection })
}
