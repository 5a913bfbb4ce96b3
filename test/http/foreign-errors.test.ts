import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { isForeignError } from '../../src/http/engine/foreign-error.js'
import { listen } from '../support/bindings.js'

// The real packages throw theirs in integrations/test/recipes/errors-of-other-services.test.ts.

const withFields = (fields: object) => Object.assign(new Error('no'), fields)
const answered = withFields({ status: 401, response: { status: 401 } })
const fetched = { ok: false, status: 401, url: 'http://127.0.0.1/mail', headers: new Headers() }

const FOREIGN: Readonly<Record<string, unknown>> = {
  'axios, got, ky, superagent, ofetch, Octokit': answered,
  'superagent’s `response.error`': withFields({ status: 401, method: 'POST', path: '/', text: '{}' }),
  'axios without a response': withFields({ isAxiosError: true, code: 'ECONNABORTED' }),
  'Node: a connection': withFields({ code: 'ECONNREFUSED', syscall: 'connect' }),
  'a file that is missing': withFields({ code: 'ENOENT' }),
  undici: withFields({ code: 'UND_ERR_RESPONSE', statusCode: 401, headers: {}, body: '' }),
  'got and ky without a response': withFields({ request: {} }),
  openai: withFields({ status: 401, headers: new Headers() }),
  'openai 4': withFields({ status: 401, headers: {}, request_id: 'req_1' }),
  Stripe: withFields({ type: 'StripeCardError', statusCode: 402, raw: {}, headers: {}, requestId: 'req_1' }),
  'Stripe without a response': withFields({ type: 'StripeConnectionError', raw: {}, requestId: undefined }),
  Square: withFields({ statusCode: 401, body: {}, rawResponse: {} }),
  AWS: withFields({ $fault: 'client', $metadata: { httpStatusCode: 401 } }),
  Adyen: withFields({ statusCode: 401, responseBody: '{}' }),
  'Microsoft Graph': withFields({ statusCode: 401, requestId: '1', headers: new Map() }),
  Firebase: withFields({ httpResponse: {} }),
  Twilio: withFields({ status: 404, code: 20404, moreInfo: 'https://example.com' }),
  gRPC: withFields({ code: 16, details: 'no', metadata: {} }),
  Elasticsearch: withFields({ meta: { statusCode: 404, headers: {} } }),
  tRPC: withFields({ data: { httpStatus: 404 }, meta: { response: {} } }),
  'a cause': new Error('no mail', { cause: new Error('no', { cause: answered }) }),
  'a response as the cause': new Error('no mail', { cause: fetched }),
  'an AggregateError': new AggregateError([new Error('no'), answered]),
  'http-errors around it': Object.assign(withFields({ response: {} }), { status: 400, statusCode: 400, expose: true }),
  'Boom with it as data': withFields({ isBoom: true, output: { statusCode: 400 }, data: answered }),
  "Nest's HttpException by axios' response": nests({ status: 401, headers: {}, config: {} }),
  "Nest's HttpException with it as the cause": Object.assign(nests({}), { cause: answered }),
  "Hono's HTTPException with a response that was fetched": withFields({ status: 401, res: fetched, getResponse() {} }),
  'a response that was fetched': fetched,
  'getters that throw': Object.defineProperty(new Error('no'), 'response', {
    get() {
      throw new Error('no')
    },
  }),
}

const OWN: Readonly<Record<string, unknown>> = {
  'an Error': new Error('no'),
  'a class with a status': withFields({ status: 404 }),
  'http-errors': withFields({ status: 405, statusCode: 405, expose: true, headers: { Allow: 'GET' } }),
  'body-parser': withFields({ status: 400, statusCode: 400, expose: true, type: 'entity.parse.failed', body: '{' }),
  Boom: withFields({ isBoom: true, isServer: false, data: { amount: 1 }, output: { statusCode: 400, headers: {} } }),
  Fastify: withFields({ code: 'FST_ERR_VALIDATION', statusCode: 400, validation: [{}], validationContext: 'body' }),
  "Nest's HttpException": nests({ message: 'no', error: 'Bad Request', statusCode: 400 }),
  "Hono's HTTPException": withFields({ status: 402, res: undefined, getResponse() {} }),
  "Hono's HTTPException with a response of its own": withFields({ status: 402, res: new Response(), getResponse() {} }),
  zod: withFields({ issues: [{ path: ['amount'] }], errors: [{ path: ['amount'] }] }),
  'a duplicate in MySQL': withFields({ code: 'ER_DUP_ENTRY', errno: 1062, sqlState: '23000' }),
  'a duplicate in Postgres': withFields({ code: '23505', severity: 'ERROR', detail: 'no' }),
  'a correlation id': withFields({ status: 409, requestId: 'own' }),
  'an own cause': new Error('no', { cause: withFields({ status: 404 }) }),
  'a cycle of causes': cycle(),
  'a response of its own': new Response(null, { status: 402 }),
  undefined: undefined,
  null: null,
  'a string': 'no',
}

/** As HttpException of @nestjs/common is. */
function nests(response: object): Error {
  return withFields({ status: 400, response, options: {}, getStatus: () => 400, getResponse: () => response })
}

function cycle(): Error {
  const error = new Error('no')
  error.cause = new Error('no', { cause: error })
  return error
}

describe('comes from elsewhere', () => {
  test.each(Object.entries(FOREIGN))('%s', (_name, error) => {
    expect(isForeignError(error)).toBe(true)
  })

  test('what fetch rejects with where nobody listens', async () => {
    const { port, close } = await listen(() => {})
    await close()
    expect(isForeignError(await fetch(`http://127.0.0.1:${port}`).catch((error: unknown) => error))).toBe(true)
  })

  test('what Node throws for a file that is missing', async () => {
    expect(isForeignError(await readFile('no-such-file').catch((error: unknown) => error))).toBe(true)
  })

  test('a chain of causes that is too long to follow', () => {
    let error = new Error('the first')
    for (let i = 0; i < 200; i++) error = new Error('no', { cause: error })
    expect(isForeignError(error)).toBe(true)
  })
})

describe('is the application’s own', () => {
  test.each(Object.entries(OWN))('%s', (_name, error) => {
    expect(isForeignError(error)).toBe(false)
  })
})
