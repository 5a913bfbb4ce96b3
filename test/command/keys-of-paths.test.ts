import express, { type NextFunction, type Request, type Response } from 'express'
import { Redis } from 'ioredis'
import { idempotency, universalCommerce } from 'once-per-key'
import { RedisStore } from 'once-per-key/redis'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { listen } from '../support/bindings.js'
import { startRedis } from '../support/redis-server.js'
import { build, command } from './built-command.js'

// Real processes on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 240_000 })
beforeAll(build)

const PATH = '/checkout-sessions/1/complete'

/** A key on two paths, of which the second has an unknown outcome. */
async function served() {
  const server = await startRedis()
  onTestFinished(() => server.close())
  const client = new Redis(server.port)
  onTestFinished(() => client.disconnect())
  const store = new RedisStore({ client })
  const once = idempotency({ store, scope: () => 'acme', profile: universalCommerce, onEvent() {} })
  const app = express().use(once)
  app.post('/checkout-sessions', (_req, res) => void res.status(201).json({}))
  app.use((_req: Request, _res: Response, next: NextFunction) => next(new Error('The bank did not answer.')))
  app.use((_error: Error, _req: Request, res: Response, _next: NextFunction) => void res.sendStatus(500))
  const { port, close } = await listen(app)
  onTestFinished(close)
  for (const path of ['/checkout-sessions', PATH]) {
    await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers: { 'Idempotency-Key': 'k' } })
  }
  return ['--redis', server.url]
}

test('a key that belongs to its path is listed, shown, settled and erased with it', async () => {
  const at = await served()
  const listed = await command(['unknown', ...at])
  expect(listed.stdout).toMatch(new RegExp(`^namespace +scope +key +path +attempt .*\\n +acme +k +${PATH} +1 `))

  expect((await command(['inspect', 'acme', 'k', ...at])).exitCode).toBe(1)
  const shown = await command(['inspect', 'acme', 'k', '--path', PATH, '--json', ...at])
  expect(JSON.parse(shown.stdout)).toMatchObject({ key: 'k', path: PATH, state: 'failed', uncertain: true })

  const settled = await command(['resolve', 'acme', 'k', '--path', PATH, '--attempt', '1', '--failed', '--yes', ...at])
  expect(settled.exitCode).toBe(0)
  expect((await command(['unknown', ...at])).stdout).toContain('Nothing awaits an operator.')

  const forgetting = ['forget', '--scope', 'acme', '--path', '/checkout-sessions', '--yes', ...at]
  expect((await command(forgetting)).exitCode).not.toBe(0)
  expect((await command([...forgetting, '--key', 'k'])).stdout).toContain('Erased.')
})
