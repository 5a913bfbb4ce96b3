import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { ROOT, run } from '../../../test/support/packed-package.js'
import { pastedProject, serveFile } from '../support/pasted-project.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 400_000 })

const EXAMPLE = 'examples/next'
const TELEMETRY_OFF = { NEXT_TELEMETRY_DISABLED: '1' }
let pasted: Awaited<ReturnType<typeof pastedProject>>
let folder: string
let next: string

beforeAll(async () => {
  pasted = await pastedProject()
  folder = join(pasted.folder, 'example')
  next = join(pasted.folder, 'node_modules/next/dist/bin/next')
  await cp(join(ROOT, EXAMPLE), folder, { recursive: true })
  // The packages of the test are links to those of the repository, which the bundler follows only inside of its root.
  await writeFile(join(folder, 'next.config.mjs'), "export default { turbopack: { root: '/' } }\n")
  vi.stubEnv('NEXT_TELEMETRY_DISABLED', TELEMETRY_OFF.NEXT_TELEMETRY_DISABLED)
  await run(process.execPath, [next, 'build'], folder)
})
afterAll(() => pasted?.remove())

async function started() {
  const server = await serveFile(next, TELEMETRY_OFF, { args: ['start', '-H', '127.0.0.1'], cwd: folder })
  await vi.waitUntil(() => server.said().includes('Ready'), { timeout: 20_000 })
  return server
}

describe('the example on Next.js, built from the packed package', () => {
  test('pays once for a request and its retry, and refuses another amount', async () => {
    const { port, said } = await started()
    const first = await post(port, 'order-1', 5_000)
    expect(first).toMatchObject({ status: 201, replayed: null, body: { amount: 5_000 } })
    expect(await post(port, 'order-1', 5_000)).toEqual({ ...first, replayed: 'true' })
    expect(await post(port, 'order-1', 9_900)).toMatchObject({ status: 409, body: { code: 'mismatched' } })
    expect(await post(port, null, 5_000)).toMatchObject({ status: 400, body: { code: 'key_missing' } })
    expect(said().match(/^paying/gm)).toHaveLength(1)
  })

  test('pays once for many requests at once', async () => {
    const { port, said } = await started()
    const all = await Promise.all(Array.from({ length: 20 }, () => post(port, 'order-2', 700)))
    for (const { status, body } of all) expect(status === 201 || body.code === 'in_flight').toBe(true)
    expect(new Set(all.filter(({ status }) => status === 201).map(({ body }) => body.id)).size).toBe(1)
    expect(said().match(/^paying 700/gm)).toHaveLength(1)
  })

  test('has a page, with the client in its bundle', async () => {
    const { port } = await started()
    const page = await (await fetch(`http://127.0.0.1:${port}/`)).text()
    expect(page).toContain('Pay 5000')
    const scripts = [...page.matchAll(/src="([^"]+\.js)"/g)].map(async ([, path]) =>
      (await fetch(`http://127.0.0.1:${port}${path}`)).text(),
    )
    expect((await Promise.all(scripts)).join()).toContain('Idempotency-Key')
  })

  test('is started by one command, and needs what it says', async () => {
    const { scripts, dependencies } = JSON.parse(await readFile(join(ROOT, EXAMPLE, 'package.json'), 'utf8'))
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    const { devDependencies } = JSON.parse(await readFile(join(ROOT, 'integrations/package.json'), 'utf8'))
    expect(scripts).toEqual({ prestart: 'next build', start: 'next start' })
    expect(dependencies['once-per-key']).toBe(`^${version}`)
    for (const name of ['next', 'react', 'react-dom']) {
      expect(dependencies[name], name).toBe(`^${devDependencies[name].replace('^', '')}`)
    }
  })
})

async function post(port: number, key: string | null, amount: number) {
  const response = await fetch(`http://127.0.0.1:${port}/payouts`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...(key !== null && { 'Idempotency-Key': key }) },
    body: JSON.stringify({ amount }),
  })
  return {
    status: response.status,
    replayed: response.headers.get('idempotent-replayed'),
    body: (await response.json()) as { id?: string; amount?: number; code?: string },
  }
}
