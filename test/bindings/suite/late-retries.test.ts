import { describe, expect, test } from 'vitest'
import type { Handler } from './framework.js'
import { FRAMEWORKS } from './frameworks/index.js'
import { type Sent, serve } from './serve.js'

const DAY_MS = 86_400_000
const paid: Handler = () => ({ status: 201, json: { id: 'po_1' } })
const sentAgo = (ms: number): Sent => ({ headers: { 'First-Sent': new Date(Date.now() - ms).toUTCString() } })

describe.each(FRAMEWORKS)('on $name, `firstSent` reads the request:', (framework) => {
  const firstSent = (header: (name: string) => string | undefined) => {
    const sent = header('first-sent')
    return sent ? new Date(sent) : undefined // Koa has an empty text for what is absent.
  }

  test('one that is too old for its record is refused, and the answer of an earlier try is replayed all the same', async () => {
    const { send, runs } = await serve(framework, paid, { options: { firstSent } })
    const late = await send(sentAgo(DAY_MS))
    expect([late.status, late.json(), runs()]).toMatchObject([
      409,
      { code: 'key_expired', retentionSeconds: 86_400 },
      0,
    ])
    expect((await send(sentAgo(1_000))).status).toBe(201)
    expect((await send(sentAgo(DAY_MS))).header('Idempotent-Replayed')).toBe('true')
    expect(runs()).toBe(1)
  })

  test('a time in the future is the client’s mistake, and one that does not say is not checked', async () => {
    const { send, runs } = await serve(framework, paid, { options: { firstSent } })
    const early = await send(sentAgo(-600_000))
    expect([early.status, early.json(), runs()]).toMatchObject([400, { code: 'key_invalid' }, 0])
    expect((await send()).status).toBe(201)
  })
})
