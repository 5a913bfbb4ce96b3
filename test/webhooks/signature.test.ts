import { Buffer } from 'node:buffer'
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { hmacSha256, standardWebhooks, stripeWebhooks } from 'once-per-key/webhooks'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { mistakesOf } from '../support/mistakes-of.js'

const RAW = Buffer.from('{"id":"evt_1"}')
const hmac = (secret: string | Buffer, content: Buffer | string, encoding: 'hex' | 'base64') =>
  createHmac('sha256', secret).update(content).digest(encoding)

describe('hmacSha256', () => {
  const verify = hmacSha256({ header: 'X-Signature', secrets: ['one', 'two'] })

  test('takes a published signature', () => {
    // RFC 4231 §4.3, test case 2.
    const published = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843'
    const ofJefe = hmacSha256({ header: 'x-signature', secrets: ['Jefe'] })
    expect(ofJefe(Buffer.from('what do ya want for nothing?'), { 'x-signature': published })).toBe(true)
  })

  test.each([
    { name: 'the first secret', signature: hmac('one', RAW, 'hex') },
    { name: 'the second secret', signature: hmac('two', RAW, 'hex') },
    { name: 'a secret, in capitals', signature: hmac('one', RAW, 'hex').toUpperCase() },
  ])('takes a signature made with $name', ({ signature }) => {
    expect(verify(RAW, { 'x-signature': signature })).toBe(true)
  })

  test.each([
    { name: 'of another secret', signature: hmac('three', RAW, 'hex') },
    { name: 'of other bytes', signature: hmac('one', `${RAW} `, 'hex') },
    { name: 'in base64', signature: hmac('one', RAW, 'base64') },
    { name: 'cut short', signature: hmac('one', RAW, 'hex').slice(0, -2) },
    { name: 'with more behind it', signature: `${hmac('one', RAW, 'hex')}00` },
    { name: 'with a prefix that is not configured', signature: `sha256=${hmac('one', RAW, 'hex')}` },
    { name: 'of its length in other characters', signature: 'é'.repeat(64) },
    { name: 'that is empty', signature: '' },
    { name: 'that is absent', signature: undefined },
  ])('refuses one $name', ({ signature }) => {
    expect(verify(RAW, signature === undefined ? {} : { 'x-signature': signature })).toBe(false)
  })

  test('takes base64 and a prefix where they are configured, and nothing else', () => {
    const prefixed = hmacSha256({ header: 'x-hub', secrets: ['one'], encoding: 'base64', prefix: 'sha256=' })
    const signature = hmac('one', RAW, 'base64')
    expect(prefixed(RAW, { 'x-hub': `sha256=${signature}` })).toBe(true)
    expect(prefixed(RAW, { 'x-hub': signature })).toBe(false)
    expect(prefixed(RAW, { 'x-hub': `sha1=${signature}` })).toBe(false)
    expect(prefixed(RAW, { 'x-hub': `SHA256=${signature}` })).toBe(false)
    expect(prefixed(RAW, { 'x-hub': `sha256=${hmac('one', RAW, 'hex')}` })).toBe(false)
    expect(prefixed(RAW, { 'x-hub': `sha256=${signature.slice(0, -1)}` })).toBe(false)
  })

  test('takes secrets as bytes, and keeps them as they were', () => {
    const secret = new Uint8Array([0, 255, 1])
    const ofBytes = hmacSha256({ header: 'x-signature', secrets: [secret] })
    const signature = hmac(Buffer.from([0, 255, 1]), RAW, 'hex')
    secret.fill(9)
    expect(ofBytes(RAW, { 'x-signature': signature })).toBe(true)
  })

  test('takes what was signed, and nothing that differs in one bit', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1 }), fc.string({ minLength: 1 }), fc.nat(), (bytes, secret, at) => {
        const given = secret === secret.trim() ? secret : Buffer.from(secret)
        const ofSecret = hmacSha256({ header: 'x-signature', secrets: [given] })
        const headers = { 'x-signature': hmac(secret, Buffer.from(bytes), 'hex') }
        expect(ofSecret(Buffer.from(bytes), headers)).toBe(true)
        const other = Buffer.from(bytes)
        other[at % bytes.length] = (other[at % bytes.length] as number) ^ (1 << (at % 8))
        expect(ofSecret(other, headers)).toBe(false)
      }),
    )
  })
})

describe('standardWebhooks', () => {
  const SECRET = `whsec_${Buffer.from('a secret of twenty-four.').toString('base64')}`
  const OTHER = `whsec_${Buffer.from('another of twenty-four..').toString('base64')}`
  const NOW_S = 1_800_000_000
  const verify = standardWebhooks({ secrets: [SECRET] })

  beforeEach(() => void vi.useFakeTimers({ now: NOW_S * 1_000 }))
  afterEach(() => void vi.useRealTimers())

  const sign = (id: string, timestamp: number | string, raw: Buffer, secret = SECRET) => {
    const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
    return `v1,${hmac(key, Buffer.concat([Buffer.from(`${id}.${timestamp}.`), raw]), 'base64')}`
  }
  const headersOf = (id = 'msg_1', timestamp: number | string = NOW_S, signature = sign(id, timestamp, RAW)) => ({
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signature,
  })

  test('takes the published example', () => {
    vi.setSystemTime(1_614_265_330_000)
    const published = standardWebhooks({ secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'] })
    const headers = {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    }
    expect(published(Buffer.from('{"test": 2432232314}'), headers)).toBe(true)
    expect(published(Buffer.from('{"test": 2432232315}'), headers)).toBe(false)
  })

  test.each([
    { ageS: 300, taken: true },
    { ageS: 301, taken: false },
    { ageS: -300, taken: true },
    { ageS: -301, taken: false },
  ])('within five minutes both ways: $ageS seconds old is taken: $taken', ({ ageS, taken }) => {
    expect(verify(RAW, headersOf('msg_1', NOW_S - ageS))).toBe(taken)
  })

  test('within the tolerance that is configured', () => {
    const strict = standardWebhooks({ secrets: [SECRET], toleranceMs: 10_000 })
    expect(strict(RAW, headersOf('msg_1', NOW_S - 10))).toBe(true)
    expect(strict(RAW, headersOf('msg_1', NOW_S - 11))).toBe(false)
  })

  const GOOD = sign('msg_1', NOW_S, RAW)
  const BAD = sign('msg_1', NOW_S, RAW, OTHER)
  test.each([
    { name: 'behind another of the list', list: `${BAD} ${GOOD}`, taken: true },
    { name: 'before another of the list', list: `${GOOD} ${BAD}`, taken: true },
    { name: 'behind one of another version', list: `v1a,${GOOD.slice(3)} ${GOOD}`, taken: true },
    { name: 'only of another version', list: GOOD.replace('v1,', 'v2,'), taken: false },
    { name: 'only of a version that begins alike', list: GOOD.replace('v1,', 'v1a,'), taken: false },
    { name: 'behind another mark than a comma', list: GOOD.replace(',', ';'), taken: false },
    { name: 'without a version', list: GOOD.slice(3), taken: false },
    { name: 'of another secret', list: BAD, taken: false },
    { name: 'cut short', list: GOOD.slice(0, -5), taken: false },
    { name: 'in a list with a comma', list: `${BAD}, ${GOOD}`, taken: true },
    { name: 'that is empty', list: '', taken: false },
    { name: 'of an empty value', list: 'v1,', taken: false },
  ])('a signature $name: $taken', ({ list, taken }) => {
    expect(verify(RAW, headersOf('msg_1', NOW_S, list))).toBe(taken)
  })

  test.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])('refuses a delivery without %s', (name) => {
    expect(verify(RAW, { ...headersOf(), [name]: undefined })).toBe(false)
    expect(verify(RAW, { ...headersOf(), [name]: '' })).toBe(false)
  })

  test('refuses an empty id, signed as it is', () => {
    expect(verify(RAW, headersOf(''))).toBe(false)
  })

  test('refuses a signed delivery under another id, or at another time', () => {
    expect(verify(RAW, { ...headersOf(), 'webhook-id': 'msg_2' })).toBe(false)
    expect(verify(RAW, { ...headersOf(), 'webhook-timestamp': String(NOW_S + 1) })).toBe(false)
  })

  test('does not let the parts of what is signed run into each other', () => {
    const moved = { ...headersOf(), 'webhook-id': `msg_1.${NOW_S}`, 'webhook-timestamp': String(NOW_S) }
    expect(verify(RAW, moved)).toBe(false)
  })

  test.each(['NaN', '1e9', '-1', `${NOW_S}.0`, ` ${NOW_S}`, `${NOW_S}s`, '9'.repeat(13)])(
    'refuses the timestamp %j, signed as it is',
    (timestamp) => {
      expect(verify(RAW, headersOf('msg_1', timestamp))).toBe(false)
    },
  )

  test('takes each of several secrets, with whsec_ before them or not', () => {
    const rotating = standardWebhooks({ secrets: [OTHER.replace('whsec_', ''), SECRET] })
    expect(rotating(RAW, headersOf('msg_1', NOW_S, GOOD))).toBe(true)
    expect(rotating(RAW, headersOf('msg_1', NOW_S, BAD))).toBe(true)
  })

  test('takes an id in UTF-8, as it comes off the wire', () => {
    const id = 'événement ☃'
    const onWire = Buffer.from(id).toString('latin1')
    expect(verify(RAW, { ...headersOf(id), 'webhook-id': onWire })).toBe(true)
  })

  test('refuses an id of which one byte in each character was signed, where a platform reads headers as UTF-8', () => {
    expect(verify(RAW, { ...headersOf('msg_A'), 'webhook-id': 'msg_\u0141' })).toBe(false)
  })
})

describe('the options', () => {
  test.each([
    {
      given: { header: 'x', secrets: [] },
      mistakes: ['secrets: expected an array of at least one secret; seen: an empty array'],
    },
    { given: { header: 'x' }, mistakes: ['secrets: expected an array of at least one secret; seen: undefined'] },
    {
      given: { header: 'x', secrets: 'hush' },
      mistakes: ['secrets: expected an array of at least one secret; seen: a string'],
    },
    { given: { header: 'x', secrets: ['fine', ''] }, mistakes: ['secrets[1]: it is empty'] },
    { given: { header: 'x', secrets: [new Uint8Array()] }, mistakes: ['secrets[0]: it is empty'] },
    {
      given: { header: 'x', secrets: [undefined] },
      mistakes: ['secrets[0]: expected a string or bytes; seen: undefined'],
    },
    {
      given: { header: 'x', secrets: new Array(1) },
      mistakes: ['secrets[0]: expected a string or bytes; seen: undefined'],
    },
    {
      given: { header: 'x', secrets: ['hush\n', ' hush', Buffer.from('hush\n')] },
      mistakes: [0, 1].map(
        (index) =>
          `secrets[${index}]: it begins or ends with white space, such as the line end of its file: trim it, or give it as bytes`,
      ),
    },
    {
      given: { heade: 'x', encoding: 'hush', secret: 'hush', secrets: [1], prefix: 1 },
      mistakes: [
        'heade: did you mean header?',
        'secret: did you mean secrets?',
        "header: expected a header's name; seen: undefined",
        'encoding: expected "hex" or "base64"; seen: "hush"',
        'prefix: expected a string; seen: 1',
        'secrets[0]: expected a string or bytes; seen: a number',
      ],
    },
    { given: null, mistakes: ['expected options, such as { secrets: … }; seen: null'] },
  ])('of hmacSha256 are refused, all mistakes at once: $mistakes', ({ given, mistakes }) => {
    expect(mistakesOf(() => hmacSha256(given as never))).toEqual(mistakes)
  })

  test.each([
    { given: { secrets: [] }, mistakes: ['secrets: expected an array of at least one secret; seen: an empty array'] },
    { given: { secrets: ['whsec_'] }, mistakes: ['secrets[0]: it is empty'] },
    { given: { secrets: [''] }, mistakes: ['secrets[0]: it is empty'] },
    { given: { secrets: [Buffer.from('a')] }, mistakes: ['secrets[0]: expected a string; seen: an object (Buffer)'] },
    {
      given: { secrets: ['whsec_hush!'], toleranceMs: 0, tolerance: 1 },
      mistakes: [
        'tolerance: did you mean toleranceMs?',
        'toleranceMs: expected an integer from 1 to 9007199254740991; seen: 0',
        'secrets[0]: expected base64, with or without the prefix whsec_',
      ],
    },
    {
      given: { secrets: ['hush='.repeat(2)] },
      mistakes: ['secrets[0]: expected base64, with or without the prefix whsec_'],
    },
  ])('of standardWebhooks are refused, all mistakes at once: $mistakes', ({ given, mistakes }) => {
    expect(mistakesOf(() => standardWebhooks(given as never))).toEqual(mistakes)
  })

  test('of stripeWebhooks, with the secret in their place, are refused by what must be there', () => {
    const mistakes = ['expected options, such as { secrets: … }; seen: a string']
    expect(mistakesOf(() => stripeWebhooks('whsec_hush' as never))).toEqual(mistakes)
  })

  test('never show a secret', () => {
    for (const secrets of ['hush-hush', ['hush-hush', ''], { hush: 'hush-hush' }]) {
      expect(() => hmacSha256({ header: '', secrets } as never)).toThrow(/^(?!.*hush).*options of hmacSha256/s)
      expect(() => standardWebhooks({ secrets } as never)).toThrow(/^(?!.*hush).*options of standardWebhooks/s)
    }
  })
})
