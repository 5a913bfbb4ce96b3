import { readFileSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { defineConfig, type Options } from 'tsup'
import { documentationOf } from './scripts/address.mjs'
import { withoutDocstrings } from './scripts/without-docstrings.js'

const manifest = JSON.parse(readFileSync('package.json', 'utf8'))

/** `node:crypto` stays `node:crypto`: bundlers for workerd, Deno and others find Node's modules by this name alone. */
const removeNodeProtocol = false

/** Keys are output paths: the entries of package.json's exports. */
const entry = {
  index: 'src/index.ts',
  core: 'src/core.ts',
  http: 'src/http/index.ts',
  fetch: 'src/fetch/index.ts',
  hono: 'src/hono/index.ts',
  client: 'src/client/index.ts',
  'client-node': 'src/client-node/index.ts',
  fastify: 'src/fastify/index.ts',
  koa: 'src/koa/index.ts',
  nest: 'src/nest/index.ts',
  memory: 'adapters/memory/index.ts',
  redis: 'adapters/redis/index.ts',
  postgres: 'adapters/postgres/index.ts',
  mysql: 'adapters/mysql/index.ts',
  sqlite: 'adapters/sqlite/index.ts',
  sealed: 'adapters/sealed/index.ts',
  run: 'src/run/index.ts',
  receiver: 'src/webhooks/receiver/index.ts',
  webhooks: 'src/webhooks/index.ts',
  opentelemetry: 'src/opentelemetry/index.ts',
  testing: 'src/testing/index.ts',
}

const library = {
  name: 'library',
  entry,
  format: 'esm',
  // Without it each CommonJS entry would have a copy of the core.
  splitting: true,
  // Rollup writes the CommonJS files; without it they are rewritten syntax by syntax, and name this machine's folders.
  treeshake: true,
  target: 'node20',
  removeNodeProtocol,
  plugins: [withoutDocstrings()],
  define: { DOCUMENTATION: JSON.stringify(documentationOf(manifest)) },
  // What other configurations build at the same time stays.
  clean: ['!bin/**', '!*.cjs', '!*.d.cts', '!*.d.ts'],
} satisfies Options

const commonjs = defineConfig({
  ...library,
  name: 'library as CommonJS, and its types',
  format: 'cjs',
  clean: ['!bin/**', '!*.js'],
  // Those of the ES modules re-export them: scripts/module-types.mjs.
  dts: { compilerOptions: { ignoreDeprecations: '6.0', stripInternal: true } },
})

const command = defineConfig({
  name: 'command',
  entry: { 'once-per-key': 'bin/main.ts' },
  outDir: 'dist/bin',
  format: 'esm',
  target: 'node20',
  removeNodeProtocol,
  clean: true,
  // It gets the library by its own name, and drivers where they are installed.
  external: [/^once-per-key(\/|$)/, 'better-sqlite3', 'ioredis', 'mysql2', 'pg'],
})

/** The playground's page is what browsers load: it is shipped as it is, beside the program that serves it. */
const page = 'examples/payments/playground/page'

const example = defineConfig({
  name: 'example',
  entry: {
    'examples/payments/main': 'examples/payments/main.ts',
    'examples/webhook-receiver/main': 'examples/webhook-receiver/main.ts',
    'examples/webhook-receiver/demo': 'examples/webhook-receiver/demo.ts',
  },
  outDir: 'build',
  format: 'esm',
  target: 'node20',
  removeNodeProtocol,
  clean: true,
  // Packages stay imports: the built example gets the library by its own name, through package.json's exports.
  external: [/^once-per-key(\/|$)/, 'express', 'ioredis', 'pg', 'pino', 'zod'],
  plugins: [
    {
      name: 'page',
      async buildEnd() {
        await cp(page, join(this.options.outDir, page), { recursive: true })
      },
    },
  ],
})

export default [library, commonjs, command, example]
