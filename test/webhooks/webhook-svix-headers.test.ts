import { Buffer } from 'node:buffer'
import { standardWebhooks } from 'once-per-key/webhooks'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'

const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
const RAW = Buffer.from('{"type":"invoice.paid"}')
const verify = standardWebhooks({ secrets: [SECRET] })

/** The headers of a delivery, under one of the two names. */
function signed(prefix: 'webhook' | 'svix', id = 'msg_1', raw = RAW): Record<string, string> {
  const now = new Date()
  return {
    [`${prefix}-id`]: id,
    [`${prefix}-timestamp`]: String(Math.floor(now.getTime() / 1_000)),
    [`${prefix}-signature`]: new Webhook(SECRET).sign(id, now, raw.toString()),
  }
}

test('headers by their older names are verified as the standard’s are', () => {
  expect(verify(RAW, signed('svix'))).toBe(true)
  expect(verify(Buffer.from('{}'), signed('svix'))).toBe(false)
  expect(verify(RAW, { ...signed('svix'), 'svix-id': 'msg_2' })).toBe(false)
})

test('a sender may send both', () => {
  expect(verify(RAW, { ...signed('webhook'), ...signed('svix') })).toBe(true)
})

test('an id that nobody signed beside one that is signed is refused: somebody might go by it', () => {
  expect(verify(RAW, { ...signed('webhook'), 'svix-id': 'msg_2' })).toBe(false)
  expect(verify(RAW, { ...signed('svix'), 'webhook-id': 'msg_2' })).toBe(false)
  expect(verify(RAW, { ...signed('webhook'), ...signed('svix', 'msg_2') })).toBe(false)
})

test('names are not mixed', () => {
  const { 'svix-id': id, ...rest } = signed('svix')
  expect(verify(RAW, rest)).toBe(false)
  expect(verify(RAW, { ...rest, 'webhook-id': id, 'webhook-signature': rest['svix-signature'] })).toBe(false)
})
