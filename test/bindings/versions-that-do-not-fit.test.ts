import Fastify from 'fastify'
import { afterEach, expect, test, vi } from 'vitest'
import { MemoryStore } from '../../adapters/memory/index.js'
import { idempotency } from '../../src/fastify/index.js'

// Their peers admit each version, so that no application's own packages stand in the way of `npm i`.

afterEach(() => {
  for (const name of ['@nestjs/common', 'rxjs', '@opentelemetry/api']) vi.doUnmock(name)
  vi.resetModules()
})

/** What the package exports in a version that lacks a name. */
function lack(name: string, missing: string): void {
  vi.doMock(name, async (original) => ({ ...(await original<object>()), [missing]: undefined }))
}

test.each([
  { what: 'Nest 8', name: '@nestjs/common', missing: 'ConfigurableModuleBuilder', least: 'Nest 9' },
  { what: 'RxJS 7.1', name: 'rxjs', missing: 'tap', least: 'RxJS 7.2' },
])('beside $what the entry for Nest names the version that it needs', async ({ name, missing, least }) => {
  lack(name, missing)
  await expect(import('../../src/nest/index.js')).rejects.toMatchObject({
    code: 'options_invalid',
    message: expect.stringContaining(
      `once-per-key/nest needs ${least} or later, and found an older ${name}: npm install ${name}@latest`,
    ),
  })
})

test('beside OpenTelemetry 1.2, instrument() names the version that it needs', async () => {
  lack('@opentelemetry/api', 'metrics')
  const { instrument } = await import('../../src/opentelemetry/index.js')
  expect(() => instrument()).toThrow(/^instrument\(\) needs @opentelemetry\/api 1\.3 or later, and found an older one/)
})

test('Fastify 4.28 refuses the plugin by its version, and no later version is refused', async () => {
  const app = Fastify()
  Object.defineProperty(app, 'version', { value: '4.28.1' })
  const options = { store: new MemoryStore(), scope: () => 'acme' }
  const old = app.register(idempotency, options).ready()
  await expect(old).rejects.toThrow("once-per-key - expected '>=4.29.0' fastify version, '4.28.1' is installed")

  const later = Fastify()
  Object.defineProperty(later, 'version', { value: '6.0.0' })
  await later.register(idempotency, options)
  await later.close()
})
