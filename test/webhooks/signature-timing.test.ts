import { Buffer } from 'node:buffer'
import { createHmac, timingSafeEqual } from 'node:crypto'
import { hmacSha256, standardWebhooks } from 'once-per-key/webhooks'
import { expect, test, vi } from 'vitest'

vi.mock('node:crypto', async (original) => {
  const crypto = await original<typeof import('node:crypto')>()
  return { ...crypto, timingSafeEqual: vi.fn(crypto.timingSafeEqual) }
})

const RAW = Buffer.from('{}')
const [ONE, TWO] = ['one'.repeat(8), 'two'.repeat(8)].map((text) => Buffer.from(text).toString('base64'))
const SECRETS = [ONE, TWO] as [string, string]
const hmac = (secret: string, content: string, encoding: 'hex' | 'base64') =>
  createHmac('sha256', Buffer.from(secret)).update(content).digest(encoding)

test.each([
  { of: 'the first secret', secret: SECRETS[0] },
  { of: 'the last secret', secret: SECRETS[1] },
  { of: 'no secret', secret: 'other' },
])('a signature of $of costs one comparison in constant time for each secret', ({ secret }) => {
  vi.mocked(timingSafeEqual).mockClear()
  const verify = hmacSha256({ header: 'x-signature', secrets: SECRETS })
  expect(verify(RAW, { 'x-signature': hmac(secret, '{}', 'hex') })).toBe(secret !== 'other')
  expect(timingSafeEqual).toHaveBeenCalledTimes(2)
})

test('a list costs as many as it has signatures, wherever the right one stands', () => {
  const now = String(Math.floor(Date.now() / 1_000))
  const verify = standardWebhooks({ secrets: SECRETS })
  const right = `v1,${hmac('one'.repeat(8), `msg_1.${now}.{}`, 'base64')}`
  const wrong = `v1,${hmac('six'.repeat(8), `msg_1.${now}.{}`, 'base64')}`
  for (const list of [`${right} ${wrong}`, `${wrong} ${right}`]) {
    vi.mocked(timingSafeEqual).mockClear()
    const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': now, 'webhook-signature': list }
    expect(verify(RAW, headers)).toBe(true)
    expect(timingSafeEqual).toHaveBeenCalledTimes(4)
  }
})
