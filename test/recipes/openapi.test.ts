import { readFileSync } from 'node:fs'
import express from 'express'
import { type IdempotencyOptions, idempotency, singleTenant } from 'once-per-key'
import { idempotency as onFetch } from 'once-per-key/fetch'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { authenticate } from '../../examples/recipes/merchant.js'
import { createProblem } from '../../src/http/answer/problem.js'
import { requestOptions } from '../../src/http/options/option-rules.js'
import { PROBLEM_CODES, type ProblemCode } from '../../src/http/options/problem.js'
import { A_DRIVER } from '../adapters/sqlite/drivers.js'
import { openStore } from '../adapters/sqlite/open-store.js'
import { failingStore } from '../support/failing-store.js'
import { counted, served } from './served.js'

interface Schema {
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly type?: string
  readonly minimum?: number
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly allOf?: readonly Schema[]
}

interface Header {
  readonly required?: boolean
  readonly schema: Schema
}

interface Reply {
  readonly headers: Readonly<Record<string, Header>>
  readonly content: Readonly<Record<string, { readonly schema: Schema }>>
}

const source = readFileSync(new URL('../../examples/recipes/openapi.json', import.meta.url), 'utf8')
const document = withoutReferences(JSON.parse(source))
const { parameters, responses } = document.paths['/payouts'].post
const refusals = Object.entries<Reply>(responses).filter(([status]) => status !== '201')

test('the document is of OpenAPI 3.1, and every reference in it leads somewhere', () => {
  expect(document.openapi).toMatch(/^3\.1\./)
  expect(JSON.stringify(document)).not.toContain('$ref')
  expect(source.match(/\$ref/g)?.length).toBeGreaterThan(10)
})

test('each header and each code says its type: `true` stays text, however it is read', () => {
  const headers = refusals.flatMap(([, reply]) => Object.values(reply.headers))
  const { code } = document.components.schemas.IdempotencyProblem.properties
  const types = [...headers, ...Object.values<Header>(document.components.headers)].map(({ schema }) => schema.type)
  expect(new Set([...types, code.type])).toEqual(new Set(['string', 'integer']))
})

test('its header is the library’s', () => {
  expect(parameters).toMatchObject([
    {
      name: requestOptions.header.default,
      in: 'header',
      required: requestOptions.required.default,
      schema: { minLength: 1, maxLength: 255 },
    },
  ])
})

test('its codes, statuses and headers are the library’s catalogue', () => {
  const listed = refusals.flatMap(([status, reply]) =>
    codesOf(reply).map((code) => [code, Number(status), schemaOf(reply).allOf?.[1]?.properties?.status?.const]),
  )
  const catalogue = PROBLEM_CODES.map((code) => {
    const { status } = createProblem(code, { retryAfterMs: 0, problemStatuses: {} })
    return [code, status, status] as const
  })
  expect(listed).toEqual(catalogue.sort(([, one], [, other]) => one - other)) // A document lists by status.
  expect(document.components.schemas.IdempotencyProblem.properties.code.enum).toEqual(PROBLEM_CODES)
})

describe('what the library answers is what the document says', () => {
  test('with a success, and its replay', async () => {
    const { post } = await start()
    const { headers } = responses['201']
    expect((await post()).header('Idempotent-Replayed')).toBeNull()
    expect(mistakesIn((await post()).header('Idempotent-Replayed'), headers['Idempotent-Replayed'].schema)).toEqual([])
  })

  const situations: Record<ProblemCode, () => Promise<Awaited<ReturnType<Started['post']>>>> = {
    key_missing: async () => (await start({ required: true })).post({ key: null }),
    key_invalid: async () => (await start()).post({ key: 'x'.repeat(256) }),
    body_too_deep: async () => (await start()).post({ body: `${'[1,'.repeat(1_001)}1${']'.repeat(1_001)}` }),
    body_malformed: () => postByFetch('{"amount":100'),
    body_too_large: () => postByFetch('{"amount":100}', { maxBodyBytes: 8 }),
    content_type_unsupported: async () =>
      (await start()).post({ body: 'amount=1', headers: { 'Content-Type': 'text/plain' } }),
    async in_flight() {
      const never = new Promise(() => {})
      const { post, runs } = await start({}, () => never)
      post().catch(() => {}) // It ends with the server.
      await expect.poll(runs).toBe(1)
      return post()
    },
    async mismatched() {
      const { post } = await start()
      await post()
      return post({ body: { amount: 200 } })
    },
    async answer_not_kept() {
      const { post } = await start({ maxAnswerBytes: 0 })
      await post()
      return post()
    },
    async outcome_unknown() {
      const { post } = await start({ unknownOutcome: 'refuse' }, (req) => {
        req.idempotency?.mayHaveEffect()
        throw new Error('It broke behind the effect')
      })
      await post()
      return post()
    },
    async key_expired() {
      return (await start({ firstSent: () => new Date(0) })).post()
    },
    async store_unavailable() {
      const store = failingStore()
      store.next('begin', () => Promise.reject(new Error('The store is away')))
      return (await start({ store })).post()
    },
    async transaction_missing() {
      const { store } = openStore(A_DRIVER)
      return (await start({ store, effects: 'in-transaction' })).post()
    },
  }

  test.each(PROBLEM_CODES)('with %s', async (code) => {
    const refused = await situations[code]()
    const reply = responses[refused.status] as Reply
    const body = JSON.parse(refused.text)
    expect(body.code).toBe(code)
    expect(body.message).toBe(body.detail)
    expect(codesOf(reply)).toContain(code)
    expect(refused.header('Content-Type')).toBe('application/problem+json')
    expect(mistakesIn(body, schemaOf(reply))).toEqual([])
    for (const [name, { required = false, schema }] of Object.entries(reply.headers)) {
      const value = refused.header(name)
      if (required) expect(value, name).not.toBeNull()
      if (value !== null) expect(mistakesIn(schema.type === 'integer' ? Number(value) : value, schema)).toEqual([])
    }
    for (const name of ['X-Should-Retry', 'Retry-After']) {
      if (refused.header(name) !== null) expect(Object.keys(reply.headers)).toContain(name)
    }
  })
})

type Started = Awaited<ReturnType<typeof start>>

async function start(options: Partial<IdempotencyOptions> = {}, work?: (req: Express.Request) => unknown) {
  const payout = counted(work)
  const app = express()
  const once = idempotency({ store: new MemoryStore(), scope: () => 'mer_acme', ...options })
  app.post('/payouts', authenticate, express.json(), once, payout.handler)
  return { ...(await served(app)), runs: payout.runs }
}

/** By a binding that reads bodies itself. */
async function postByFetch(body: string, options: { readonly maxBodyBytes?: number } = {}) {
  const once = onFetch({ store: new MemoryStore(), scope: singleTenant, ...options })
  const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': 'order-1' }
  const sent = new Request('http://test/payouts', { method: 'POST', headers, body })
  const response = await once.handle(sent, () => Response.json({}))
  const header = (name: string) => response.headers.get(name)
  return { status: response.status, header, text: await response.text(), replayed: false }
}

function codesOf(reply: Reply): readonly string[] {
  return (schemaOf(reply).allOf?.[1]?.properties?.code?.enum ?? []) as string[]
}

function schemaOf(reply: Reply): Schema {
  return reply.content['application/problem+json']?.schema as Schema
}

/** As much of JSON Schema as the document uses of it. */
function mistakesIn(value: unknown, schema: Schema, path = '$'): string[] {
  const mistakes: string[] = []
  if ('const' in schema && schema.const !== value) mistakes.push(`${path} is not ${schema.const}`)
  if (schema.enum !== undefined && !schema.enum.includes(value)) mistakes.push(`${path} is none of ${schema.enum}`)
  if (schema.type === 'string' && typeof value !== 'string') mistakes.push(`${path} is no string`)
  if (schema.type === 'integer' && !Number.isInteger(value)) mistakes.push(`${path} is no integer`)
  if (schema.minimum !== undefined && Number(value) < schema.minimum) mistakes.push(`${path} is too small`)
  const members = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  for (const name of schema.required ?? []) if (!(name in members)) mistakes.push(`${path}.${name} is missing`)
  for (const [name, each] of Object.entries(schema.properties ?? {})) {
    if (name in members) mistakes.push(...mistakesIn(members[name], each, `${path}.${name}`))
  }
  for (const each of schema.allOf ?? []) mistakes.push(...mistakesIn(value, each, path))
  return mistakes
}

// biome-ignore lint/suspicious/noExplicitAny: a document of any shape
function withoutReferences(root: any): any {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const resolved = (node: any): any => {
    if (typeof node !== 'object' || node === null) return node
    if (Array.isArray(node)) return node.map(resolved)
    if (typeof node.$ref === 'string') return resolved(targetOf(node.$ref))
    return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, resolved(value)]))
  }
  const targetOf = (reference: string) => {
    const target = reference
      .replace(/^#\//, '')
      .split('/')
      .reduce((node, name) => node?.[name], root)
    if (target === undefined) throw new Error(`${reference} leads nowhere`)
    return target
  }
  return resolved(root)
}
