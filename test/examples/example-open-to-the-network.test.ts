import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type BuiltExample, buildExample } from '../support/built-example.js'
import { startExample } from './example-process.js'

// `npm start` listened on every address of its machine, with API keys that stand in the README.

/** The addresses of this machine that others may see. */
const outer = Object.values(networkInterfaces()).flatMap((some) =>
  (some ?? []).filter(({ internal, scopeid }) => !internal && !scopeid).map(({ address }) => address),
)
const hasIPv6 = Object.values(networkInterfaces()).some((some) => some?.some(({ address }) => address === '::1'))

let example: BuiltExample

beforeAll(async () => {
  example = await buildExample()
}, 60_000)

afterAll(() => example.remove())

test('without HOST it listens on 127.0.0.1 alone, and says so', async () => {
  const { origin, output } = await startExample(example)
  const { port } = new URL(origin)
  expect(await canConnect('127.0.0.1', port)).toBe(true)
  for (const address of [...outer, ...(hasIPv6 ? ['::1'] : [])]) {
    expect([address, await canConnect(address, port)]).toEqual([address, false])
  }
  expect(output()).toContain('It listens on this machine alone; HOST=0.0.0.0 lets others come')
  expect(output()).toContain('Its webhooks go to public addresses alone; DEMO_WEBHOOK_LOOPBACK=true lets them')
}, 20_000)

test('with HOST=0.0.0.0 others can come, and the greeting says so', async () => {
  const variables = { HOST: '0.0.0.0', DEMO_WEBHOOK_LOOPBACK: 'true' }
  const { origin, output } = await startExample(example, variables)
  const { port, hostname } = new URL(origin)
  expect(hostname).toBe('localhost')
  for (const address of ['127.0.0.1', ...outer.filter((each) => !each.includes(':'))]) {
    expect([address, await canConnect(address, port)]).toEqual([address, true])
  }
  expect(output()).toContain('Others can reach it, and its API keys are no secret.')
  expect(output()).toContain('Its webhooks go to public addresses, and to this machine')
}, 20_000)

test.skipIf(!hasIPv6)(
  'with HOST=::1 its address is one that can be opened',
  async () => {
    const { origin } = await startExample(example, { HOST: '::1' })
    expect(origin).toMatch(/^http:\/\/\[::1\]:\d+$/)
    expect((await fetch(`${origin}/health`)).status).toBe(200)
  },
  20_000,
)

function canConnect(address: string, port: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(Number(port), address)
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}
