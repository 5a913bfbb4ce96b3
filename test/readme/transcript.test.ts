import { readFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { MemoryStore } from 'once-per-key/memory'
import { pino } from 'pino'
import { afterAll, describe, expect, test } from 'vitest'
import { createApp } from '../../examples/payments/app.js'

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
const [, transcript = ''] = /```console\n([\s\S]*?)```/.exec(readme) ?? []
const [definition = '', ...steps] = transcript.split(/^\$ /m).filter((step) => step !== '')

const { app } = createApp({ store: new MemoryStore(), logger: pino({ level: 'silent' }) })
const server = createServer(app).listen(0)
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

describe("the README's transcript is what the payments example says", () => {
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
    const [command = '', ...expected] = step.split('\n').filter((line) => line !== '')
    const [, key = '', body = '', delay] = /^payout (\S+) '(.+?)'(?: -H 'x-demo-delay-ms: (\d+)')?/.exec(command) ?? []
    const response = payout(key, body, delay)
    if (command.endsWith('&')) return // It runs on behind the next one.

    const printed = await response
    let at = 0
    for (const line of expected) {
      const found = printed.findIndex((each, i) => i >= at && asPattern(line).test(each))
      expect(found, `${line}\nin\n${printed.join('\n')}`).toBeGreaterThanOrEqual(at)
      at = found + 1
    }
    const [, id] = /"id":"(\w+)"/.exec(printed.at(-1) ?? '') ?? []
    if (id !== undefined) expect(id).toBe(ids.get(key) ?? id)
    if (id !== undefined) ids.set(key, id)
  })
})

const PATH = '/api/service/payout/create'
const HEADERS = { Authorization: 'Bearer demo_acme', 'Content-Type': 'application/json' }

/** The lines that `curl -si` prints. */
function payout(key: string, body: string, delay: string | undefined): Promise<string[]> {
  const { port } = server.address() as AddressInfo
  const headers = { ...HEADERS, 'Idempotency-Key': key, ...(delay !== undefined && { 'x-demo-delay-ms': delay }) }
  return new Promise((resolve) => {
    const req = request({ port, path: PATH, method: 'POST', headers }, async (res) => {
      const lines = [`HTTP/1.1 ${res.statusCode} ${res.statusMessage}`]
      for (let i = 0; i < res.rawHeaders.length; i += 2) lines.push(`${res.rawHeaders[i]}: ${res.rawHeaders[i + 1]}`)
      resolve([...lines, '', Buffer.concat(await res.toArray()).toString()])
    })
    req.on('error', () => {}) // The one in the background ends with the server.
    req.end(body)
  })
}

/** `…` stands for anything. */
function asPattern(line: string): RegExp {
  const literal = line.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${literal.join('.*')}$`)
}
