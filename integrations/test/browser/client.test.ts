import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import { idempotency, singleTenant } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { type Browser, chromium } from 'playwright-core'
import { build } from 'tsup'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest'
import { ROOT } from '../../../test/docs/pages.js'
import { listen } from '../../../test/support/bindings.js'
import { gate } from '../../../test/support/gate.js'

/** The recipe as a bundler ships it to a browser. */
let script = ''
let browser: Browser

beforeAll(async () => {
  script = await bundled('examples/recipes/client.ts')
  // A host other than this machine: over plain HTTP, browsers do not trust it, and hide a part of `crypto`.
  const args = ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP shop.test 127.0.0.1']
  browser = await chromium.launch({ executablePath: inject('browser'), args })
})
afterAll(() => browser?.close())

describe('a page that is loaded anew in the middle of a payment', () => {
  test('goes on with it under the key in localStorage: the payment is made once', async () => {
    const { page, bank, keys, pay, kept } = await open()
    const { opened, open: letGo } = gate()
    bank.mockImplementation(() => opened)
    await page.evaluate("void pay('order-1001', 100)")
    await vi.waitFor(() => expect(bank).toHaveBeenCalled())
    const [key] = await kept()
    await page.reload()
    expect(await kept()).toEqual([key])

    const paid = pay('order-1001')
    await vi.waitFor(() => expect(keys).toHaveLength(2)) // in flight: told to wait
    letGo()
    expect(await paid).toMatch(/^Paid: /)
    expect(bank).toHaveBeenCalledTimes(1)
    expect(new Set(keys)).toEqual(new Set([key]))
    expect(await kept()).toEqual([])
  })

  test('pays once although the response was lost with the page', async () => {
    const { page, origin, bank, keys, pay } = await open()
    bank.mockImplementation(() => page.goto('about:blank').then(() => {}))
    await page.evaluate("void pay('order-1001', 100)")
    await vi.waitFor(() => expect(page.url()).toBe('about:blank'))
    await page.goto(origin)
    expect(await pay('order-1001')).toMatch(/^Paid: /)
    expect(bank).toHaveBeenCalledTimes(1)
    expect(new Set(keys).size).toBe(1)
  })
})

/** A shop's page, and its service, whose bank takes its time. */
async function open() {
  const bank = vi.fn(async () => {})
  const keys: (string | undefined)[] = []
  const app = express()
  app.get(
    '/',
    (_req, res) => void res.type('html').send('<!doctype html><script type="module" src="page.js"></script>'),
  )
  app.get('/page.js', (_req, res) => {
    res.type('js').send(`${script}\nglobalThis.pay = payments(localStorage)`)
  })
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant, required: true })
  const noteKey: express.RequestHandler = (req, _res, next) => {
    keys.push(req.get('Idempotency-Key'))
    next()
  }
  app.post('/payouts', noteKey, express.json(), once, async (_req, res) => {
    await bank()
    res.status(201).json({ id: `po_${bank.mock.calls.length}` })
  })
  const { port, close } = await listen(app)
  const context = await browser.newContext()
  onTestFinished(async () => {
    await context.close()
    await close()
  })
  const page = await context.newPage()
  const origin = `http://shop.test:${port}/`
  await page.goto(origin)
  expect(await page.evaluate("[isSecureContext, 'randomUUID' in crypto]")).toEqual([false, false])
  return {
    page,
    origin,
    bank,
    keys,
    pay: (order: string) => page.evaluate<string>(`pay('${order}', 100)`),
    /** What localStorage holds. */
    kept: () => page.evaluate<string[]>('Object.values(localStorage)'),
  }
}

async function bundled(source: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'once-per-key-page-'))
  try {
    await build({
      entry: { page: join(ROOT, source) },
      outDir: folder,
      format: 'esm',
      platform: 'browser',
      target: 'es2022',
      outExtension: () => ({ js: '.mjs' }),
      noExternal: [/.*/],
      esbuildOptions: (options) => {
        options.alias = { 'once-per-key/client': join(ROOT, 'src/client/index.ts') }
      },
      config: false,
      silent: true,
    })
    return await readFile(join(folder, 'page.mjs'), 'utf8')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
