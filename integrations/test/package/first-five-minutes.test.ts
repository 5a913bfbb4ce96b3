import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { BLOCKS } from '../../../test/docs/pages.js'
import { inTime } from '../../../test/support/in-time.js'
import { pastedProject, serveFile } from '../support/pasted-project.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 })

const file = BLOCKS.find(({ page, language }) => page === 'README.md' && language === 'js')?.code ?? ''
let pasted: Awaited<ReturnType<typeof pastedProject>>
beforeAll(async () => {
  pasted = await pastedProject()
})
afterAll(() => pasted?.remove())

interface Mistake {
  readonly mistake: string
  /** Replacements in the README's file. */
  readonly edit: readonly (readonly [from: string, to: string])[]
  /** `null`: the server does not start. */
  readonly status: number | null
  /** What happened, what to do, and the page about it. */
  readonly told: readonly string[]
  readonly contentType?: string
}

const STORE = 'new MemoryStore()'
const IMPORT = "import { MemoryStore } from 'once-per-key/memory'"
const REDIS = "import { RedisStore } from 'once-per-key/redis'"
const ROUTE = 'express.json(), once, async'

const MISTAKES: readonly Mistake[] = [
  {
    mistake: 'no scope',
    edit: [['  scope: singleTenant,', '']],
    status: null,
    told: ['scope: expected a function of the request', '`scope: singleTenant`', 'errors.md#options_invalid'],
  },
  {
    mistake: 'no store',
    edit: [[`  store: ${STORE},`, '']],
    status: null,
    told: ['store: expected a store, such as new MemoryStore()', 'once-per-key/memory', 'errors.md#options_invalid'],
  },
  {
    mistake: 'a misspelt option',
    edit: [['required: true', 'require: true']],
    status: null,
    told: ['require: did you mean required?', 'errors.md#options_invalid'],
  },
  {
    mistake: 'something else than a client',
    edit: [
      [IMPORT, REDIS],
      [STORE, 'new RedisStore({ client: { url: process.env.REDIS_URL } })'],
    ],
    status: null,
    told: ['client: expected', 'ioredis', 'errors.md#options_invalid'],
  },
  {
    mistake: 'a client in place of the options',
    edit: [
      [IMPORT, `${REDIS}\nimport { Redis } from 'ioredis'`],
      [STORE, 'new RedisStore(new Redis({ lazyConnect: true }))'],
    ],
    status: null,
    told: ['{ client', 'errors.md#options_invalid'],
  },
  {
    mistake: 'the parser after the middleware',
    edit: [[ROUTE, 'once, express.json(), async']],
    status: 500,
    told: ['that no parser has read', 'before the middleware', '`express.json()`', 'errors.md#body_not_parsed'],
  },
  {
    mistake: 'a form, and no parser for it',
    edit: [],
    contentType: 'application/x-www-form-urlencoded',
    status: 500,
    told: ['that no parser has read', 'express.urlencoded({ extended: true })', 'errors.md#body_not_parsed'],
  },
  {
    mistake: 'another content type',
    edit: [],
    contentType: 'application/xml',
    status: 415,
    told: ['application/xml', "express.raw({ type: 'application/xml' })", 'errors.md#content_type_unsupported'],
  },
  {
    mistake: 'mounted twice',
    edit: [['const app = express()', 'const app = express()\napp.use(express.json(), once)']],
    status: 500,
    told: ['has already passed the library', 'Protect each route once', 'errors.md#mounted_twice'],
  },
  {
    mistake: 'a scope that is not there',
    edit: [['scope: singleTenant', 'scope: (req) => req.merchantId']],
    status: 500,
    told: ['undefined', 'mount authentication before the middleware', 'errors.md#scope_invalid'],
  },
  {
    mistake: 'a client that is not connected',
    edit: [
      [IMPORT, `${REDIS}\nimport { createClient } from 'redis'`],
      [STORE, 'new RedisStore({ client: createClient() })'],
    ],
    status: 503,
    told: ['The client is closed', 'await client.connect()', 'errors.md#store_unavailable'],
  },
  {
    mistake: 'a Redis that is down',
    edit: [
      [IMPORT, `${REDIS}\nimport { Redis } from 'ioredis'`],
      [STORE, 'new RedisStore({ client: new Redis(1).on("error", () => {}) })'],
    ],
    status: 503,
    told: ['did not reply within 2000 ms', 'Check that its server is reachable', 'errors.md#store_unavailable'],
  },
]

describe('the README’s file with one mistake says what happened, what to do, and where to read on', () => {
  test.each(MISTAKES)('$mistake', async ({ edit, status, told, contentType = 'application/json' }) => {
    const server = await start(edit)
    if (status === null) {
      await inTime(server.ended, 20_000)
      expect(server.exitCode()).toBe(1)
    } else {
      const response = await post(server.port, contentType)
      expect(response.status).toBe(status)
      await vi.waitFor(() => expect(server.said()).toContain(told.at(-1)))
    }
    for (const words of told) expect(server.said()).toContain(words)
    expect(server.said()).not.toContain('paying')
  })

  test('an async handler that throws on Express 4 ends the process with its error, as Node does, and not silently', async () => {
    const server = await start([
      ["from 'express'", "from 'express4'"],
      ['  const id =', "  throw new Error('the bank is away')\n  const id ="],
    ])
    await expect(post(server.port, 'application/json')).rejects.toThrow()
    await inTime(server.ended, 20_000)
    expect([server.exitCode(), server.said()]).toEqual([1, expect.stringContaining('the bank is away')])
  })

  test('no key is told to the client', async () => {
    const server = await start([])
    const response = await post(server.port, 'application/json', {})
    expect([response.status, await response.json()]).toMatchObject([400, { code: 'key_missing' }])
  })
})

async function start(edit: Mistake['edit']) {
  let code = file
  for (const [from, to] of edit) {
    expect(code).toContain(from)
    code = code.replace(from, to)
  }
  const path = join(pasted.folder, `${crypto.randomUUID()}.mjs`)
  await writeFile(path, code)
  return serveFile(path)
}

function post(
  port: number,
  contentType: string,
  key: Readonly<Record<string, string>> = { 'Idempotency-Key': 'order-1001' },
) {
  const headers = { 'Content-Type': contentType, ...key }
  const body = contentType === 'application/json' ? '{"amount":5000}' : 'amount=5000'
  return fetch(`http://127.0.0.1:${port}/payouts`, { method: 'POST', headers, body })
}
