import { Buffer } from 'node:buffer'
import { createHmac } from 'node:crypto'
import { standardWebhooks } from 'once-per-key/webhooks'
import { expect, test } from 'vitest'
import { mistakesOf } from '../support/mistakes-of.js'

// A secret cut short to one character of base64, such as `whsec_A`, was taken. It holds no byte at all, so deliveries were
// checked against the empty key, with which anybody can sign.

test.each(['whsec_A', 'A', 'A=', 'whsec_A==', 'whsec_AAAAA', 'AAAA=', 'AAAAAA==='])(
  'a secret that base64 does not end like is refused: %s',
  (secret) => {
    expect(mistakesOf(() => standardWebhooks({ secrets: [secret] }))).toEqual([
      'secrets[0]: expected base64, with or without the prefix whsec_',
    ])
  },
)

const BYTES = 'QUFB'.repeat(8)

test.each(['whsec_QQ', 'QQ==', 'QQ=', 'QQQ', 'QQQ=', 'QQQQ', 'QQQQQQ', 'QQQQQQQ='].map(longEnough))(
  'a secret with its padding or without is taken, and the empty key opens nothing: %s',
  (secret) => {
    const verify = standardWebhooks({ secrets: [secret] })
    const timestamp = String(Math.floor(Date.now() / 1_000))
    const signedWith = (key: Buffer) => {
      const signature = createHmac('sha256', key).update(`msg_1.${timestamp}.{}`).digest('base64')
      return { 'webhook-id': 'msg_1', 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
    }
    const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
    expect(verify(Buffer.from('{}'), signedWith(key))).toBe(true)
    expect(verify(Buffer.from('{}'), signedWith(Buffer.alloc(0)))).toBe(false)
  },
)

/** The same, behind the 24 bytes that a secret must have. */
function longEnough(ending: string): string {
  return ending.startsWith('whsec_') ? ending.replace('whsec_', `whsec_${BYTES}`) : BYTES + ending
}
