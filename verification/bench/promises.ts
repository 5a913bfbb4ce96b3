import { setTimeout as pause } from 'node:timers/promises'
import { FAILS, WAIT_MS } from './payout.js'
import type { Probe, Reply } from './probe.js'

/** What protection is for: each a promise that a probe can see broken. */
export interface Promised {
  readonly title: string
  /** What is said of a variant that breaks it. */
  readonly failing: string
  /** `null`: it does not apply. */
  holds(probe: Probe): Promise<boolean | null>
}

export const PROMISES: readonly Promised[] = [
  {
    title: 'a retry gets the same answer',
    failing: 'another answer on replay',
    async holds({ pay, runsDuring }) {
      const replies: Reply[] = []
      const runs = await runsDuring(async () => {
        for (let i = 0; i < 3; i++) replies.push(await pay('again'))
      })
      const [{ status, text }] = replies as [Reply]
      return runs === 1 && status === 201 && replies.every((reply) => reply.status === status && reply.text === text)
    },
  },
  {
    title: 'with its headers',
    failing: 'loses headers on replay',
    async holds({ pay }) {
      const first = await pay('headers')
      const { location, contentType } = await pay('headers')
      return location === first.location && contentType === first.contentType
    },
  },
  {
    title: 'once in a race',
    failing: 'runs twice in a race',
    async holds({ pay, runsDuring }) {
      const headers = { [WAIT_MS]: '50' }
      const race = () => Promise.all(Array.from({ length: 20 }, () => pay('race', { headers })))
      return (await runsDuring(race)) === 1
    },
  },
  {
    title: 'another body is refused',
    failing: 'takes another body for the same',
    async holds({ pay, runsDuring }) {
      await pay('body')
      let other: Reply | undefined
      const runs = await runsDuring(async () => {
        other = await pay('body', { amountMinor: 129_901 })
      })
      return runs === 0 && (other?.status ?? 0) >= 400
    },
  },
  {
    title: 'merchants are apart',
    failing: "gives one merchant's answer to another",
    async holds({ pay, runsDuring }) {
      await pay('scope')
      return (await runsDuring(() => pay('scope', { merchant: 'merchant_other' }))) === 1
    },
  },
  {
    title: 'a failure frees the key',
    failing: 'a failure blocks the key',
    async holds({ pay }) {
      await pay('failure', { headers: { [FAILS]: '1' } })
      return (await pay('failure')).status === 201
    },
  },
  {
    title: 'stored, then sent',
    failing: 'sends before it has stored',
    async holds({ service, pay, pauseRedis, resumeRedis }) {
      if (service.variant.store !== 'redis') return null
      let answered = false
      const reply = pay('stored', { headers: { [WAIT_MS]: '200' } }).then(() => {
        answered = true
      })
      await pause(100) // It has its claim, and works.
      pauseRedis()
      await pause(500)
      const early = answered
      resumeRedis()
      await reply
      return !early
    },
  },
  {
    title: 'a client that hung up gets the answer later',
    failing: 'runs again for a client that hung up',
    async holds({ pay, runsDuring }) {
      const headers = { [WAIT_MS]: '200' }
      let later: Reply | undefined
      const runs = await runsDuring(async () => {
        await pay('hung up', { headers, timeoutMs: 100 }).catch(() => {})
        await pause(300)
        later = await pay('hung up', { headers })
      })
      return runs === 1 && later?.status === 201
    },
  },
  {
    title: 'a crash frees the key in half a minute',
    failing: 'a crash blocks the key',
    holds: async ({ stopped }) => stopped?.isFreed ?? null,
  },
  {
    title: 'a late owner does not replace the answer',
    failing: 'a late owner replaces the answer',
    holds: async ({ stopped }) => stopped?.isFenced ?? null,
  },
  {
    title: 'answers while Redis is silent',
    failing: 'hangs while Redis is silent',
    async holds({ service, pay, runsDuring, pauseRedis, resumeRedis }) {
      if (service.variant.store !== 'redis') return null
      let status = 0
      pauseRedis()
      try {
        const runs = await runsDuring(async () => {
          status = (await pay('silent', { timeoutMs: 4_000 })).status
        })
        return runs === 0 && status >= 500
      } finally {
        resumeRedis()
        await pause(200) // What was sent meanwhile is still answered.
      }
    },
  },
]
