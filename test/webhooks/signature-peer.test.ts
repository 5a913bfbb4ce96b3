import { Buffer } from 'node:buffer'
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { standardWebhooks } from 'once-per-key/webhooks'
import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

const NOW_S = 1_800_000_000

beforeEach(() => void vi.useFakeTimers({ now: NOW_S * 1_000 + 999 }))
afterEach(() => void vi.useRealTimers())

const secret = fc.uint8Array({ minLength: 24, maxLength: 64 }).map((bytes) => Buffer.from(bytes).toString('base64'))
const prefix = fc.constantFrom('', 'whsec_')
const id = fc.stringMatching(/^[\x21-\x7e]{1,40}$/)
const text = fc.string({ unit: 'grapheme', maxLength: 200 })
const ageS = fc.oneof(fc.integer({ min: -302, max: 302 }), fc.integer({ min: -400_000, max: 400_000 }))

test('what the reference library signs is taken here', () => {
  fc.assert(
    fc.property(secret, prefix, id, text, (key, whsec, messageId, body) => {
      const signature = new Webhook(whsec + key).sign(messageId, new Date(), body)
      const headers = { 'webhook-id': messageId, 'webhook-timestamp': String(NOW_S), 'webhook-signature': signature }
      expect(standardWebhooks({ secrets: [whsec + key] })(Buffer.from(body), headers)).toBe(true)
    }),
  )
})

test('what is signed by the letter of the standard is taken here and by the reference library alike', () => {
  let taken = 0
  let refused = 0
  fc.assert(
    fc.property(secret, secret, id, text, ageS, fc.boolean(), (key, other, messageId, body, age, isOther) => {
      const timestamp = String(NOW_S - age)
      const signer = Buffer.from(isOther ? other : key, 'base64')
      const signature = createHmac('sha256', signer).update(`${messageId}.${timestamp}.${body}`).digest('base64')
      const headers = {
        'webhook-id': messageId,
        'webhook-timestamp': timestamp,
        'webhook-signature': `v1,${signature}`,
      }
      const verdict = standardWebhooks({ secrets: [key] })(Buffer.from(body), headers)
      expect(verdict).toBe(isTakenByPeer(key, body, headers))
      if (verdict) taken++
      else refused++
    }),
    { numRuns: 500 },
  )
  expect(Math.min(taken, refused)).toBeGreaterThan(50)
})

test('a list of signatures, good and bad, is read as the reference library reads it', () => {
  const key = Buffer.from('a secret of twenty-four.').toString('base64')
  const good = new Webhook(key).sign('msg_1', new Date(), '{}')
  const entries = fc.constantFrom(good, good.replace('v1,', 'v1a,'), good.replace('v1,', 'v2,'), 'v1,AAAA', 'v1,', 'v1')
  fc.assert(
    fc.property(fc.array(entries, { minLength: 1, maxLength: 4 }), (list) => {
      const headers = {
        'webhook-id': 'msg_1',
        'webhook-timestamp': String(NOW_S),
        'webhook-signature': list.join(' '),
      }
      expect(standardWebhooks({ secrets: [key] })(Buffer.from('{}'), headers)).toBe(isTakenByPeer(key, '{}', headers))
    }),
  )
})

function isTakenByPeer(key: string, body: string, headers: Record<string, string>): boolean {
  try {
    new Webhook(key).verify(body, headers, { jsonParse: false } as never)
    return true
  } catch {
    return false
  }
}
