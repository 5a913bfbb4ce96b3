import cron, { type ScheduledTask } from 'node-cron'
import type { Store } from 'once-per-key/core'
import { RefusedError, runner } from 'once-per-key/run'

/** What one run of the day does: `day` is a date such as 2026-11-22. */
export type Settle = (day: string) => Promise<{ readonly settled: number }>

/** Each process has this schedule; one of them settles the day. */
export function settlement(store: Store, settle: Settle): { run(now: Date): Promise<void>; start(): ScheduledTask } {
  const once = runner({ store, name: 'settlement', retentionMs: 7 * 86_400_000 })

  async function run(now: Date): Promise<void> {
    const day = now.toISOString().slice(0, 10)
    try {
      await once({ scope: 'cron', key: day, input: null }, () => settle(day))
    } catch (error) {
      // Another process is at it. One that dies leaves the day to whoever comes next: schedule more than one try.
      if (!(error instanceof RefusedError && error.code === 'in_flight')) throw error
    }
  }

  const start = () => cron.schedule('0,10,20 2 * * *', () => run(new Date()), { timezone: 'Etc/UTC' })
  return { run, start }
}
