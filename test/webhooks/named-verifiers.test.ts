import { Buffer } from 'node:buffer'
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { githubWebhooks, shopifyWebhooks, standardWebhooks, stripeWebhooks } from 'once-per-key/receiver'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { mistakesOf } from '../support/mistakes-of.js'

const NOW_S = 1_800_000_000
const RAW = Buffer.from('{"id":"evt_1"}')

beforeEach(() => void vi.useFakeTimers({ now: NOW_S * 1_000 }))
afterEach(() => void vi.useRealTimers())

describe('githubWebhooks', () => {
  test('takes the signature that GitHub publishes, and no other', () => {
    // GitHub, "Validating webhook deliveries": "Testing the webhook payload validation".
    const verify = githubWebhooks({ secrets: ["It's a Secret to Everybody"] })
    const signature = '757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'
    const body = Buffer.from('Hello, World!')
    expect(verify(body, { 'x-hub-signature-256': `sha256=${signature}` })).toBe(true)
    expect(verify(body, { 'x-hub-signature-256': signature })).toBe(false)
    expect(verify(body, { 'x-hub-signature': `sha1=${signature}` })).toBe(false)
    expect(verify(RAW, { 'x-hub-signature-256': `sha256=${signature}` })).toBe(false)
  })
})

describe('shopifyWebhooks', () => {
  test('takes a signature in base64, and no other', () => {
    const verify = shopifyWebhooks({ secrets: ['old', 'new'] })
    const signed = (secret: string) => createHmac('sha256', secret).update(RAW).digest('base64')
    expect(verify(RAW, { 'x-shopify-hmac-sha256': signed('new') })).toBe(true)
    expect(verify(RAW, { 'x-shopify-hmac-sha256': signed('other') })).toBe(false)
    expect(verify(RAW, {})).toBe(false)
  })
})

describe('stripeWebhooks', () => {
  const verify = stripeWebhooks({ secrets: ['whsec_one', 'whsec_two'] })
  const v1 = (at = NOW_S, secret = 'whsec_one', body: Buffer | string = RAW) =>
    createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')
  const taken = (header: string | undefined) => verify(RAW, { 'stripe-signature': header })

  test.each([
    { name: 'of the first secret', header: `t=${NOW_S},v1=${v1()}` },
    { name: 'of the second', header: `t=${NOW_S},v1=${v1(NOW_S, 'whsec_two')}` },
    {
      name: 'beside others, in any order',
      header: `v0=${'0'.repeat(64)}, v1=${'0'.repeat(64)}, v1=${v1()}, t=${NOW_S}`,
    },
    { name: 'at the tolerance', header: `t=${NOW_S - 300},v1=${v1(NOW_S - 300)}` },
    { name: 'by a clock that is ahead', header: `t=${NOW_S + 300},v1=${v1(NOW_S + 300)}` },
  ])('takes one $name', ({ header }) => expect(taken(header)).toBe(true))

  test.each([
    { name: 'of another secret', header: `t=${NOW_S},v1=${v1(NOW_S, 'whsec_three')}` },
    { name: 'of other bytes', header: `t=${NOW_S},v1=${v1(NOW_S, 'whsec_one', '{}')}` },
    { name: 'of another time', header: `t=${NOW_S},v1=${v1(NOW_S - 1)}` },
    { name: 'of another scheme', header: `t=${NOW_S},v0=${v1()}` },
    { name: 'beyond the tolerance', header: `t=${NOW_S - 301},v1=${v1(NOW_S - 301)}` },
    { name: 'too far ahead', header: `t=${NOW_S + 301},v1=${v1(NOW_S + 301)}` },
    { name: 'with two times', header: `t=${NOW_S},t=${NOW_S - 999},v1=${v1()}` },
    { name: 'with two times, of which the second was signed', header: `t=${NOW_S - 1},t=${NOW_S},v1=${v1()}` },
    { name: 'without a time', header: `v1=${v1()}` },
    { name: 'with a time that is no number', header: `t=now,v1=${v1()}` },
    { name: 'that is empty', header: '' },
    { name: 'that is absent', header: undefined },
  ])('refuses one $name', ({ header }) => expect(taken(header)).toBe(false))
})

describe('standardWebhooks with public keys', () => {
  const pair = () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    const key = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64')
    const signed = (content: string) => `v1a,${sign(null, Buffer.from(content), privateKey).toString('base64')}`
    return { key, signed }
  }
  const [own, other] = [pair(), pair()]
  const verify = standardWebhooks({ publicKeys: [`whpk_${own.key}`] })
  const headers = (signature: string, at = NOW_S) => ({
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(at),
    'webhook-signature': signature,
  })
  const content = `msg_1.${NOW_S}.${RAW}`

  test('takes a `v1a` signature of one of them', () => {
    expect(verify(RAW, headers(own.signed(content)))).toBe(true)
    expect(verify(RAW, headers(`v1,AAAA v1a,AAAA ${other.signed(content)} ${own.signed(content)}`))).toBe(true)
    expect(standardWebhooks({ publicKeys: [other.key, own.key] })(RAW, headers(own.signed(content)))).toBe(true)
  })

  test.each([
    { name: 'of another key', signature: other.signed(content) },
    { name: 'of other bytes', signature: own.signed(`${content} `) },
    { name: 'under the name of `v1`', signature: own.signed(content).replace('v1a', 'v1') },
    { name: 'cut short', signature: own.signed(content).slice(0, -4) },
  ])('refuses one $name', ({ signature }) => expect(verify(RAW, headers(signature))).toBe(false))

  test('tries eight signatures: each reads all of the body, and whoever sends them need not know a key', () => {
    const others = (amount: number) => Array.from({ length: amount }, () => other.signed(content)).join(' ')
    expect(verify(RAW, headers(`${others(7)} ${own.signed(content)}`))).toBe(true)
    expect(verify(RAW, headers(`${others(8)} ${own.signed(content)}`))).toBe(false)
  })

  test('refuses one beyond the tolerance', () => {
    const at = NOW_S - 301
    expect(verify(RAW, headers(own.signed(`msg_1.${at}.${RAW}`), at))).toBe(false)
  })

  test('takes either kind where both kinds of keys are given, and only `v1` without public keys', () => {
    const secret = Buffer.alloc(32, 7)
    const v1 = `v1,${createHmac('sha256', secret).update(content).digest('base64')}`
    const secrets = [secret.toString('base64')]
    const either = standardWebhooks({ secrets, publicKeys: [own.key] })
    expect([v1, own.signed(content)].map((signature) => either(RAW, headers(signature)))).toEqual([true, true])
    expect(standardWebhooks({ secrets })(RAW, headers(own.signed(content)))).toBe(false)
  })
})

describe('mistakes in options are listed at construction, without a secret:', () => {
  const SHOWN = 'a-secret-that-is-shown'
  test.each([
    {
      of: () => githubWebhooks({ secrets: [] }),
      says: /secrets: expected an array of at least one secret; seen: an empty array/,
    },
    {
      of: () => shopifyWebhooks({} as never),
      says: /secrets: expected an array of at least one secret; seen: undefined/,
    },
    { of: () => stripeWebhooks({ secrets: [''], toleranceMs: 0 }), says: /secrets\[0\]: it is empty|toleranceMs/ },
    {
      of: () => stripeWebhooks({ secrets: ['sk_test_1'] }),
      says: /secrets\[0\]: expected the endpoint's signing secret/,
    },
    { of: () => stripeWebhooks({ secret: SHOWN } as never), says: /secret: did you mean secrets\?/ },
    { of: () => standardWebhooks({}), says: /secrets: expected an array/ },
    {
      of: () => standardWebhooks({ publicKeys: [] }),
      says: /publicKeys: expected an array of at least one public key/,
    },
    { of: () => standardWebhooks({ publicKeys: [`whsk_${SHOWN}`] }), says: /publicKeys\[0\]: expected the public key/ },
    { of: () => standardWebhooks({ publicKeys: [SHOWN] }), says: /publicKeys\[0\]: expected whpk_/ },
  ])('$says', ({ of, says }) => {
    const message = String(mistakesOf(of))
    expect(message).toMatch(says)
    expect(message).not.toContain(SHOWN)
  })
})
