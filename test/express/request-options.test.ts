import multer from 'multer'
import { bodyField, ietfDraft } from 'once-per-key'
import { describe, expect, test } from 'vitest'
import { type Options, payouts, VERSIONS } from '../support/payouts.js'

describe.each(VERSIONS)('on $version', ({ make }) => {
  describe('a multipart body', () => {
    const form = (boundary: string, amount: number) =>
      `--${boundary}\r\nContent-Disposition: form-data; name="amount"\r\n\r\n${amount}\r\n--${boundary}--\r\n`
    const sent = (boundary: string, amount: number) => ({
      body: form(boundary, amount),
      type: `multipart/form-data; boundary=${boundary}`,
    })

    test.each([
      { name: 'parsed', parsers: [multer().none()] },
      { name: 'not parsed', parsers: [] },
    ])('without `fingerprint` is misuse: $name', async ({ parsers }) => {
      const { post, runs } = await payouts(make, { parsers })
      const reply = await post(sent('x', 1))
      expect(reply).toMatchObject({ status: 500, code: 'fingerprint_required' })
      expect(reply.json?.message).toMatch(/fingerprint\(req\)/)
      expect(runs()).toBe(0)
    })

    test('with `fingerprint` is one request, whatever its boundary', async () => {
      const parsers = [multer().none()]
      const { post, runs } = await payouts(make, { parsers, options: { fingerprint: (req) => req.body } })
      expect(await post(sent('x', 1))).toMatchObject({ status: 201 })
      expect(await post(sent('y', 1))).toMatchObject({ replayed: true })
      expect(await post(sent('z', 2))).toMatchObject({ code: 'mismatched' })
      expect(runs()).toBe(1)
    })
  })

  test.each<{ name: string; code: string; wayOut: RegExp; options: Options }>([
    {
      name: 'no scope',
      code: 'scope_invalid',
      wayOut: /mount authentication before/,
      options: { scope: () => undefined },
    },
    {
      name: 'a rejecting scope',
      code: 'scope_invalid',
      wayOut: /singleTenant/,
      options: { scope: () => Promise.reject(new Error()) },
    },
    {
      name: 'a coerced scope',
      code: 'scope_invalid',
      wayOut: /the word "undefined"/,
      options: { scope: () => `${undefined}` },
    },
    {
      name: 'no fingerprint',
      code: 'fingerprint_invalid',
      wayOut: /must return/,
      options: { fingerprint: () => undefined },
    },
    {
      name: 'a fingerprint of a Map',
      code: 'fingerprint_required',
      wayOut: /Set a `fingerprint/,
      options: { fingerprint: () => new Map() },
    },
    {
      name: 'a failing skip',
      code: 'skip_failed',
      wayOut: /true or false/,
      options: { skip: () => Promise.reject(new Error()) },
    },
  ])(
    'misuse reaches the error handler with a way out, and the handler does not run: $name',
    async ({ code, wayOut, options }) => {
      const { post, runs } = await payouts(make, { options })
      const reply = await post()
      expect(reply).toMatchObject({ status: 500, code })
      expect(reply.json?.message).toMatch(wayOut)
      expect(runs()).toBe(0)
    },
  )

  describe('the deprecated body field', () => {
    const legacyKey = bodyField('idempotencyKey', {
      deprecatedSince: new Date('2026-01-01T00:00:00Z'),
      sunset: new Date('2027-01-01T00:00:00Z'),
      link: 'https://docs.example/keys',
    })
    const DEPRECATED = [
      ['@1767225600'],
      ['Fri, 01 Jan 2027 00:00:00 GMT'],
      ['<https://docs.example/keys>; rel="deprecation"'],
    ]
    const marks = (reply: { lines(name: string): readonly string[] }) =>
      ['Deprecation', 'Sunset', 'Link'].map(reply.lines)

    test('works, and every response to it says that it is deprecated', async () => {
      const { post, runs } = await payouts(make, { options: { legacyKey } })
      const inField = { keys: [], body: '{"amount":100,"idempotencyKey":"order-1"}' }
      const replies = [
        await post(inField),
        await post(inField),
        await post({ ...inField, body: '{"idempotencyKey":"order-1"}' }),
      ]
      replies.push(await post({ ...inField, body: '{"idempotencyKey":17}' }))
      expect(replies.map(({ status, code, replayed }) => code ?? `${status} ${replayed}`)).toEqual([
        '201 false',
        '201 true',
        'mismatched',
        'key_invalid',
      ])
      for (const reply of replies) expect(marks(reply)).toEqual(DEPRECATED)
      const moved = await post({ keys: ['order-1'], body: '{"amount":100}' })
      expect([moved.replayed, marks(moved)]).toEqual([true, [[], [], []]])
      expect(runs()).toBe(1)
    })

    test.each(['{"constructor":{"name":{"toString":1}}}', '[]', '1e400', 'true', '{"__proto__":null}'])(
      'that is %s is 400, not a crash',
      async (value) => {
        const { post, runs } = await payouts(make, { options: { legacyKey } })
        expect(await post({ keys: [], body: `{"idempotencyKey":${value}}` })).toMatchObject({
          status: 400,
          code: 'key_invalid',
        })
        expect(runs()).toBe(0)
      },
    )
  })

  test('refusals take the statuses and the shape that the options give them', async () => {
    const { post } = await payouts(make, {
      options: {
        problemStatuses: ietfDraft,
        renderProblem: ({ code, status }) => ({
          contentType: 'application/json',
          body: { code: code.toUpperCase(), status },
        }),
      },
    })
    await post()
    const reply = await post({ body: '{}' })
    expect(reply).toMatchObject({ status: 422, json: { code: 'MISMATCHED', status: 422 } })
    expect([reply.header('Content-Type'), reply.header('X-Should-Retry')]).toEqual(['application/json', 'false'])
  })
})
