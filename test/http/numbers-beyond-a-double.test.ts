import fc from 'fast-check'
import { Hono } from 'hono'
import { idempotency } from 'once-per-key/fetch'
import { idempotency as onHono } from 'once-per-key/hono'
import { computeRequestFingerprint, parseComparableBody } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'

// Where the library itself read the bytes, numbers counted as doubles: 9007199254740993 and 9007199254740992 were one request, and the
// second amount got the response of the first one.

const JSON_TYPE = ['Content-Type', 'application/json']

function of(text: string): string | null {
  return computeRequestFingerprint(
    'POST',
    '/payouts',
    parseComparableBody(new TextEncoder().encode(text), JSON_TYPE).body,
  )
}

const WRAPS = [
  (number: string) => number,
  (number: string) => `[1,${number}]`,
  (number: string) => `{"amount": ${number} ,"to":"9007199254740993"}`,
]

/** As where a parser has parsed the body before. */
function ofParsed(text: string): string | null {
  return computeRequestFingerprint('POST', '/payouts', JSON.parse(text))
}

const NINES = '9'.repeat(400)

describe('two numbers that differ', () => {
  test.each([
    ['9007199254740993', '9007199254740992'],
    ['9007199254740993', '9007199254740994'],
    ['9007199254740993', '-9007199254740993'],
    ['12345678901234567890', '12345678901234567891'],
    ['0.12345678901234567', '0.12345678901234568'],
    ['123456789.1234567891', '123456789.1234567892'],
    ['0.1', '0.1000000000000000055511151231257827'],
    ['1e400', '1e401'],
    ['1e400', '-1e400'],
    ['1e400', '"1e400"'],
    ['1e-400', '0'],
    ['1e-400', '1e-401'],
    ['1.2345e-320', '1.2346e-320'],
    ['1.00000000000000000001', '1'],
    ['9007199254740993', '"9007199254740993"'],
    ['9007199254740993', '"9007199254740993e0"'],
    [`${NINES}1`, `${NINES}2`],
    ['1e1000000000000000', '1e1000000000000001'],
  ])('are two requests: %s and %s', (one, other) => {
    for (const wrap of WRAPS) expect(of(wrap(one)), wrap('…')).not.toBe(of(wrap(other)))
  })
})

describe('two ways to write a number', () => {
  test.each([
    ['1', '1.0', '1e0', '100e-2', '0.01E+2', `1.${'0'.repeat(400)}`, '1e-0000', '10e-00001'],
    ['0', '-0', '0.000', '0e999', '-0.0E-5', `0.${'0'.repeat(30)}`],
    ['9007199254740993', '9007199254740993.0', '9007199254740993e0', '900719925474099.3e1', '90071992547409930E-1'],
    ['1e400', '10e399', '0.1E401', `1${'0'.repeat(400)}`, '1.0e+00000000000000000400'],
    ['1e-400', `0.${'0'.repeat(399)}1`, '100e-402'],
    ['1e23', '100000000000000000000000', '1E+23'],
    ['-12345678901234567890', '-1.2345678901234567890e19', '-12345678901234567890.000'],
  ])('are one request: %s', (one, ...others) => {
    for (const wrap of WRAPS) for (const other of others) expect(of(wrap(other)), other).toBe(of(wrap(one)))
  })

  test('are one, whatever the digits and the place of the point', () => {
    const digits = fc.stringMatching(/^[1-9]\d{0,30}$/)
    fc.assert(
      fc.property(digits, fc.integer({ min: -400, max: 400 }), fc.nat(5), (text, exponent, zeros) => {
        const moved = `${text}${'0'.repeat(zeros)}e${exponent - zeros}`
        expect(of(`[${moved}]`)).toBe(of(`[${text}e${exponent}]`))
        const point = `${text.slice(0, 1)}.${text.slice(1)}0e${exponent + text.length - 1}`
        expect(of(`[${point}]`)).toBe(of(`[${text}e${exponent}]`))
      }),
    )
  })

  test('are two if and only if their values differ', () => {
    const number = fc.tuple(fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }), fc.integer({ min: -3, max: 3 }))
    fc.assert(
      fc.property(number, fc.integer({ min: -2, max: 2 }), ([value, exponent], by) => {
        const same = by === 0
        expect(of(`[${value}e${exponent}]`) === of(`[${value + BigInt(by)}e${exponent}]`)).toBe(same)
      }),
    )
  })
})

describe('a number that a double holds', () => {
  test.each([
    '0',
    '-0',
    '0.1',
    '1e23',
    '9007199254740992',
    '1.7976931348623157e308',
    '5e-324',
    '1234567890123456',
    '2.5e-7',
  ])('counts as where it was parsed before: %s', (text) => {
    for (const wrap of WRAPS) expect(of(wrap(text)), wrap(text)).toBe(ofParsed(wrap(text)))
  })

  test('so does any double, and any body beside whose text stand such numbers', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.double({ noNaN: true, noDefaultInfinity: true }), (value, double) => {
        const text = JSON.stringify({ value, double })
        expect(of(text)).toBe(ofParsed(text))
      }),
    )
  })
})

describe('beside such a number', () => {
  test.each([
    {
      name: 'names are in any order',
      one: '{"b":"x","a":9007199254740993}',
      other: '{ "a": 9007199254740993, "b": "\\u0078" }',
    },
    {
      name: 'the last of two members of one name counts',
      one: '{"a":9007199254740993,"a":9007199254740995}',
      other: '{"a":9007199254740995}',
    },
  ])('$name', ({ one, other }) => {
    expect(of(one)).toBe(of(other))
  })

  test.each([
    [
      'text with digits',
      '{"a":"9007199254740993","b":9007199254740993}',
      '{"a":"9007199254740992","b":9007199254740993}',
    ],
    [
      'text with quotes and escapes',
      '["\\"9007199254740993\\\\",9007199254740993]',
      '["\\"9007199254740992\\\\",9007199254740993]',
    ],
    ['a member named __proto__', '{"__proto__":9007199254740993}', '{"__proto__":9007199254740992}'],
    ['an object in place of it', '[9007199254740993]', '[{"text":"9007199254740993e0"}]'],
  ])('%s counts as what it is', (_name, one, other) => {
    expect(of(one)).not.toBe(of(other))
  })

  test('1,000 levels have a fingerprint, and 1,001 have none', () => {
    const nested = (levels: number) => `${'['.repeat(levels)}9007199254740993${']'.repeat(levels)}`
    expect(of(nested(1_000))).toMatch(/^v1\./)
    expect(of(nested(1_001))).toBeNull()
    expect(of(nested(100_000))).toBeNull()
  })
})

const AMOUNTS = ['9007199254740992', '9007199254740993', '0.30000000000000000001'].map(
  (amount) => `{"amount":${amount}}`,
)

describe.each([
  {
    on: 'Fetch',
    serve() {
      const once = idempotency({ store: new MemoryStore(), scope: () => 'acme' })
      return once(async (request) => new Response(await request.text(), { status: 201 }))
    },
  },
  {
    on: 'Hono',
    serve() {
      const app = new Hono()
      app.use(onHono({ store: new MemoryStore(), scope: () => 'acme' }))
      app.post('/payouts', async (c) => c.text(await c.req.text(), 201))
      return async (request: Request) => app.fetch(request)
    },
  },
  {
    on: 'Hono, where a validator has parsed the body before',
    serve() {
      const app = new Hono()
      app.use(async (c, next) => {
        await c.req.json()
        await next()
      })
      app.use(onHono({ store: new MemoryStore(), scope: () => 'acme' }))
      app.post('/payouts', async (c) => c.text(await c.req.text(), 201))
      return async (request: Request) => app.fetch(request)
    },
  },
])('on $on', ({ serve }) => {
  test.each(AMOUNTS)('another amount does not get the response to %s', async (body) => {
    const handle = serve()
    const send = async (sent: string) => {
      const headers = { 'Idempotency-Key': 'k', 'Content-Type': 'application/json' }
      const response = await handle(new Request('http://test/payouts', { method: 'POST', headers, body: sent }))
      return [response.status, await response.text()]
    }
    expect(await send(body)).toEqual([201, body])
    expect(await send(body)).toEqual([201, body])
    for (const other of AMOUNTS.filter((amount) => amount !== body)) expect((await send(other))[0]).toBe(409)
  })
})
