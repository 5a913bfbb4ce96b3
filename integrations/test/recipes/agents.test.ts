import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import Database from 'better-sqlite3'
import { build } from 'esbuild'
import { MemoryStore } from 'once-per-key/memory'
import { runner } from 'once-per-key/run'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { paymentsServer } from '../../recipes/agents/payments-server.js'
import { INTEGRATIONS } from '../support/installed.js'

const ORDER = { order_id: 'order-1', amount: 500 }
interface Told {
  readonly isError?: boolean
  readonly content: readonly { readonly text: string }[]
  readonly structuredContent: {
    readonly code?: string
    readonly retryAfterSeconds?: number | null
    readonly id?: string
  }
}

describe('the recipe for an MCP server, as a process', () => {
  const program = join(INTEGRATIONS, 'node_modules/.cache/agents-server.mjs')
  const recipe = join(INTEGRATIONS, 'node_modules/.cache/agents-main.mjs')

  beforeAll(async () => {
    mkdirSync(join(program, '..'), { recursive: true })
    await bundled('integrations/test/recipes/agents-server.main.ts', program)
    await bundled('integrations/recipes/agents/main.ts', recipe)
  })

  async function start(folder: string, env: Record<string, string> = {}, file = program) {
    const client = new Client({ name: 'agent', version: '1.0.0' })
    const path = process.env.PATH ?? ''
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [file],
        env: { PATH: path, FOLDER: folder, ...env },
      }),
    )
    onTestFinished(() => client.close())
    return () => client.callTool({ name: 'create_payment', arguments: ORDER }) as unknown as Promise<Told>
  }

  test('the program of the page pays once, in two sessions', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'agents-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const session = () => start(folder, { PAYMENTS_FILE: join(folder, 'payments.db') }, recipe)
    const first = await (await session())()
    expect(first.structuredContent.id).toMatch(/^tr_/)
    expect(await (await session())()).toEqual(first)
  })

  test('an agent whose server died behind the transfer waits as it is told, retries, and has paid once', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'agents-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const dying = await start(folder, { DIES_AFTER_TRANSFER: '1' })
    const call = await start(folder) // Before the crash, so that the retry comes while the lease is live.
    await expect(dying()).rejects.toThrow(/closed/i)

    const waits: unknown[] = []
    let told = await call()
    while (typeof told.structuredContent.retryAfterSeconds === 'number') {
      waits.push(told.structuredContent.code)
      await wait(told.structuredContent.retryAfterSeconds * 1_000)
      told = await call()
    }
    expect(waits).toContain('in_flight')
    expect(told).toMatchObject({ content: [{ text: expect.stringMatching(/^Paid: tr_/) }] })
    const ledger = new Database(join(folder, 'bank.db'))
    expect(ledger.prepare('SELECT count(*) AS n FROM calls').get()).toEqual({ n: 2 })
    expect(ledger.prepare('SELECT amount FROM transfers').all()).toEqual([{ amount: 500 }])
    ledger.close()
  })
})

/** Beside the packages that it imports. */
async function bundled(source: string, outfile: string): Promise<void> {
  const entryPoints = [join(INTEGRATIONS, '..', source)]
  await build({ entryPoints, outfile, bundle: true, packages: 'external', platform: 'node', format: 'esm' })
}

describe('what a model is told', () => {
  async function connect(server: McpServer) {
    const client = new Client({ name: 'agent', version: '1.0.0' })
    const [left, right] = InMemoryTransport.createLinkedPair()
    await Promise.all([server.connect(right), client.connect(left)])
    onTestFinished(() => client.close())
    return (args: object = ORDER) =>
      client.callTool({ name: 'create_payment', arguments: { ...args } }) as unknown as Promise<Told>
  }

  const onRecipe = (bank: { transfer(amount: number, key: string): Promise<{ id: string }> }, options: object = {}) =>
    connect(
      paymentsServer({
        once: runner({ store: new MemoryStore(), name: 'create_payment', ...options }),
        bank,
        account: 'local',
      }),
    )

  test('a repeat gets the first result', async () => {
    let transfers = 0
    const call = await onRecipe({ transfer: async () => ({ id: `tr_${++transfers}` }) })
    expect([await call(), await call()]).toMatchObject([
      { structuredContent: { id: 'tr_1' } },
      { structuredContent: { id: 'tr_1' } },
    ])
  })

  test('another amount: stop, and ask', async () => {
    const call = await onRecipe({ transfer: async () => ({ id: 'tr_1' }) })
    await call()
    const told = await call({ ...ORDER, amount: 501 })
    expect(told).toMatchObject({ isError: true, structuredContent: { code: 'mismatched', retryAfterSeconds: null } })
    expect(told.content[0]?.text).toMatch(/^Stop: .*Ask the user/)
  })

  test('another amount where nobody knows whether the first one was paid: not that it was', async () => {
    const call = await onRecipe({ transfer: () => Promise.reject(new Error('lost')) })
    await call()
    const told = await call({ ...ORDER, amount: 501 })
    expect(told.structuredContent).toMatchObject({ code: 'mismatched' })
    expect(told.content[0]?.text).not.toMatch(/was paid/)
  })

  test.each(['', 'x'.repeat(256), 'order-1\n', 'order\t1'])(
    'an order that cannot be one: not to call again (%#)',
    async (order_id) => {
      const transfer = vi.fn(async () => ({ id: 'tr_1' }))
      const call = await onRecipe({ transfer })
      const told = await call({ ...ORDER, order_id }).catch((error: Error) => ({ content: [{ text: error.message }] }))
      expect(told.content[0]?.text).not.toMatch(/call again|not known/i)
      expect(transfer).not.toHaveBeenCalled()
    },
  )

  test('a payment that is being made: wait', async () => {
    let end = (_: { id: string }) => {}
    const call = await onRecipe({
      transfer: () =>
        new Promise((resolve) => {
          end = resolve
        }),
    })
    const first = call()
    const second = await call()
    expect(second).toMatchObject({ isError: true, structuredContent: { code: 'in_flight' } })
    expect(second.content[0]?.text).toMatch(/^Wait \d+ s, then call again with exactly the same arguments/)
    end({ id: 'tr_1' })
    expect((await first).structuredContent).toEqual({ id: 'tr_1' })
  })

  test('an outcome that nobody knows: call again, or, where that is refused, stop', async () => {
    const failing = { transfer: () => Promise.reject(new Error('lost')) }
    const call = await onRecipe(failing, { unknownOutcome: 'refuse' })
    expect((await call()).structuredContent).toEqual({ code: 'unknown', retryAfterSeconds: 0 })
    const told = await call()
    expect(told.structuredContent).toEqual({ code: 'outcome_unknown', retryAfterSeconds: null })
    expect(told.content[0]?.text).toMatch(/^Stop: do not call again/)
  })
})

describe('keys that fail', () => {
  /** The first result is lost on its way to the model, which calls again. */
  async function paidTwice(keyOf: (args: { key?: string | undefined }, callId: string) => string, retryWith: object) {
    const once = runner({ store: new MemoryStore(), name: 'create_payment' })
    let transfers = 0
    const server = new McpServer({ name: 'payments', version: '1.0.0' })
    const inputSchema = { amount: z.number(), key: z.string().optional() }
    server.registerTool('create_payment', { inputSchema }, async ({ amount, key }, { requestId }) => {
      const input = { amount }
      await once({ scope: 'local', key: keyOf({ key }, String(requestId)), input }, async () => ({ id: ++transfers }))
      return { content: [] }
    })
    const client = new Client({ name: 'agent', version: '1.0.0' })
    const [left, right] = InMemoryTransport.createLinkedPair()
    await Promise.all([server.connect(right), client.connect(left)])
    await client.callTool({ name: 'create_payment', arguments: { amount: 500, key: 'payment-1' } })
    await client.callTool({ name: 'create_payment', arguments: { amount: 500, ...retryWith } })
    await client.close()
    return transfers
  }

  test('the id of the call: a retry is another call, and pays twice', async () => {
    expect(await paidTwice((_args, callId) => callId, {})).toBe(2)
  })

  test('a parameter that the model makes up: it makes up another for the retry, and pays twice', async () => {
    expect(await paidTwice(({ key = '' }) => key, { key: 'payment-1-retry' })).toBe(2)
    expect(await paidTwice(({ key = '' }) => key, { key: 'payment-1' })).toBe(1)
  })
})
