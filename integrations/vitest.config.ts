import { existsSync } from 'node:fs'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig, type Plugin } from 'vitest/config'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** Older versions of Nest, each with the packed package beside it. */
const NESTS = join(HERE, 'nest') + sep
const NARROW = join(ROOT, 'test/versions') + sep
const WIDE = join(HERE, 'versions') + sep

/** The packed package, and the zod that is beside it: also for the root's files, which would find those of the root. */
const packed: Plugin = {
  name: 'packed',
  enforce: 'pre',
  resolveId(source, importer, options) {
    if (!/^(once-per-key|zod)(\/|$)/.test(source) || importer?.startsWith(NESTS)) return null
    return this.resolve(source, join(HERE, 'package.json'), { ...options, skipSelf: true })
  },
}

/** The root's suites run with the versions of `integrations/versions` in place of those of `test/versions`. */
const wider: Plugin = {
  name: 'wider',
  enforce: 'pre',
  async resolveId(source, importer, options) {
    if (!source.includes('/versions/') || importer?.startsWith(WIDE)) return null
    const found = await this.resolve(source, importer, { ...options, skipSelf: true })
    if (!found?.id.startsWith(NARROW)) return null
    const wide = found.id.replace(NARROW, WIDE)
    return existsSync(wide) ? wide : null
  },
}

/** Suites of the root that run here once more, with more versions of what they try, or with another driver. */
const SUITES = [
  'test/adapters/redis/{clients,eviction-policy,histories,redis-store,store-laws}.test.ts',
  'test/adapters/sql/{histories,store-laws}.test.ts',
  'test/adapters/sqlite/**/*.test.ts',
  'test/bindings/suite/**/*.test.ts',
  'test/command/command.test.ts',
  'test/node/event-streams-that-a-framework-pipes.test.ts',
  'test/fastify/fastify-*.test.ts',
]

export default defineConfig({
  root: ROOT,
  plugins: [packed, wider],
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'recipes',
          include: ['integrations/test/{docs,nest,opentelemetry,platforms,recipes,webhooks}/**/*.test.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'clients',
          include: ['integrations/test/{mysql-clients,postgres-clients,redis-clients,sqlite}/**/*.test.ts'],
        },
      },
      { extends: true, test: { name: 'tracers', include: ['integrations/test/tracers/*.test.ts'] } },
      {
        extends: true,
        test: { name: 'package', include: ['integrations/test/{package,runtimes,types}/**/*.test.ts'] },
      },
      { extends: true, test: { name: 'suites', include: SUITES } },
    ],
    env: {
      ONCE_PER_KEY_BETTER_SQLITE3: join(HERE, 'node_modules/better-sqlite3'),
      ONCE_PER_KEY_LIBSQL: join(HERE, 'node_modules/libsql'),
    },
    // The package passes through Vite as the tests do, so that a test can replace what it imports.
    server: { deps: { inline: [/integrations\/node_modules\/once-per-key\//] } },
    globalSetup: 'test/support/global-setup.ts',
    testTimeout: 30_000,
    hookTimeout: 120_000,
    unstubEnvs: true,
  },
})
