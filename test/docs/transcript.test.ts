import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { MemoryStore } from 'once-per-key/memory'
import { pino } from 'pino'
import { afterAll, describe, expect, test } from 'vitest'
import { createApp } from '../../examples/payments/app.js'
import { BLOCKS } from './pages.js'
import { expectPrinted, printedBy } from './printed.js'

const transcript = BLOCKS.find(({ page, language }) => page === 'docs/playground.md' && language === 'console')?.code
const [definition = '', ...steps] = (transcript ?? '').split(/^\$ /m).filter((step) => step !== '')

const { app } = createApp({ store: new MemoryStore(), logger: pino({ level: 'silent' }) })
const server = createServer(app).listen(0)
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

describe("the playground page's transcript is what the payments example says", () => {
  test('the function that it defines sends what this test sends', () => {
    for (const part of [PATH, ...Object.entries(HEADERS).map(([name, value]) => `-H '${name}: ${value}'`)]) {
      expect(definition).toContain(part)
    }
    expect(definition).toContain(`-H "Idempotency-Key: $1" -d "$2"`)
  })

  test('it shows a first request, its replay, and both conflicts', () => {
    expect(steps).toHaveLength(5)
  })

  const ids = new Map<string, string>()

  test.each(steps)('$ %s', async (step) => {
    const [command = '', ...shown] = step.split('\n').filter((line) => line !== '')
    const [, key = '', body = '', delay] = /^payout (\S+) '(.+?)'(?: -H 'x-demo-delay-ms: (\d+)')?/.exec(command) ?? []
    const response = payout(key, body, delay)
    if (command.endsWith('&')) return // It runs on behind the next one.

    const printed = await response
    expectPrinted(printed, shown)
    const [, id] = /"id":"(\w+)"/.exec(printed.at(-1) ?? '') ?? []
    if (id !== undefined) expect(id).toBe(ids.get(key) ?? id)
    if (id !== undefined) ids.set(key, id)
  })
})

const PATH = '/api/service/payout/create'
const HEADERS = { Authorization: 'Bearer demo_acme', 'Content-Type': 'application/json' }

function payout(key: string, body: string, delay: string | undefined): Promise<string[]> {
  const { port } = server.address() as AddressInfo
  const headers = { ...HEADERS, 'Idempotency-Key': key, ...(delay !== undefined && { 'x-demo-delay-ms': delay }) }
  return printedBy({ port, path: PATH, headers, body })
}
