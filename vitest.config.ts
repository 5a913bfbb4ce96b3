import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/longest-first.js'
import { EVERYDAY } from './test/support/thoroughness.js'

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))

/** Their files share workers: half of their time would go into loading the same modules for each file. */
const SHARED = ['test/*/**/*.test.ts', 'verification/bench/**/*.test.ts']
/** But these count timers, traces or warnings of their process, or replace or load anew modules that others have loaded. */
export const ALONE = [
  'test/core/{execution-lease,execution-pending,trace}.test.ts',
  'test/core/{duplicates-in-one-process,given-up-before-the-limit}.test.ts',
  'test/core/{silent-servers,steps-that-nobody-awaits}.test.ts',
  'test/adapters/postgres/shared-pool.test.ts',
  'test/bindings/versions-that-do-not-fit.test.ts',
  'test/client/retries.test.ts',
  'test/examples/availability.test.ts',
  'test/fetch/idempotency.test.ts',
  'test/recipes/stores.test.ts',
  'test/webhooks/{signature-timing,webhook-refusals-that-nobody-hears,webhook-retries-that-are-refused}.test.ts',
]

/** They take long, most of it in programs around the library: `npm run test:long` runs them, and `npm test` leaves them out. */
export const LONG = [
  // Processes that are killed, stopped, paused, restored, or many at a time.
  'test/processes/{dead-owner,killed-runner,reserve-call-record,stopped-owner,two-processes,webhook-deliveries}.test.ts',
  'test/adapters/sqlite/{durability,killed,races,waiting-scripts}.test.ts',
  'test/adapters/memory/{cluster,scans}.test.ts',
  'test/adapters/sql/chaos.test.ts',
  'test/core/{hidden-class-of-executions,tokens-of-one-snapshot}.test.ts',
  // Servers that are silent for seconds, or do much.
  'test/command/unanswered.test.ts',
  'test/adapters/redis/redis-that-hangs.test.ts',
  'test/adapters/postgres/{growth,standing-still}.test.ts',
  'test/run/steps-on-servers.test.ts',
  'test/client/lossy-network.test.ts',
  'test/express/merchants-under-load.test.ts',
  // The command as npm installs it, the example programs as they are built, and on each store.
  'test/command/{command,forget,places}.test.ts',
  'test/examples/{process,redis-outages,redis-service,sqlite-service,webhooks-process}.test.ts',
  'test/examples/operations-on-{postgres,redis}.test.ts',
  // Other runners, compilers and what they say.
  'test/docs/assistants.test.ts',
  'test/scripts/test-command.test.ts',
  'test/testing/other-runners.test.ts',
  'verification/proof/mutants/compiler.test.ts',
  // Programs that count what thousands of requests allocate.
  'verification/cost/{budgets,large-bodies,ratios}.test.ts',
]
const NOT_NOW = [...configDefaults.exclude, ...(EVERYDAY ? LONG : [])]

export default defineConfig({
  resolve: {
    // The package by its own name, as its users write it, but from the sources: for coverage, and without a build.
    alias: [
      { find: /^once-per-key$/, replacement: path('src/index.ts') },
      { find: 'once-per-key/core', replacement: path('src/core.ts') },
      { find: 'once-per-key/http', replacement: path('src/http/index.ts') },
      { find: 'once-per-key/fetch', replacement: path('src/fetch/index.ts') },
      { find: 'once-per-key/hono', replacement: path('src/hono/index.ts') },
      { find: 'once-per-key/client/node', replacement: path('src/client-node/index.ts') },
      { find: 'once-per-key/client', replacement: path('src/client/index.ts') },
      { find: 'once-per-key/fastify', replacement: path('src/fastify/index.ts') },
      { find: 'once-per-key/koa', replacement: path('src/koa/index.ts') },
      { find: 'once-per-key/nest', replacement: path('src/nest/index.ts') },
      { find: 'once-per-key/memory', replacement: path('adapters/memory/index.ts') },
      { find: 'once-per-key/redis', replacement: path('adapters/redis/index.ts') },
      { find: 'once-per-key/postgres', replacement: path('adapters/postgres/index.ts') },
      { find: 'once-per-key/mysql', replacement: path('adapters/mysql/index.ts') },
      { find: 'once-per-key/sqlite', replacement: path('adapters/sqlite/index.ts') },
      { find: 'once-per-key/sealed', replacement: path('adapters/sealed/index.ts') },
      { find: 'once-per-key/run', replacement: path('src/run/index.ts') },
      { find: 'once-per-key/receiver', replacement: path('src/webhooks/receiver/index.ts') },
      { find: 'once-per-key/webhooks', replacement: path('src/webhooks/index.ts') },
      { find: 'once-per-key/opentelemetry', replacement: path('src/opentelemetry/index.ts') },
      { find: 'once-per-key/testing', replacement: path('src/testing/index.ts') },
    ],
  },
  test: {
    projects: [
      {
        extends: true,
        test: { name: 'apart', include: ['{test,verification}/**/*.test.ts'], exclude: [...NOT_NOW, ...SHARED] },
      },
      { extends: true, test: { name: 'alone', include: ALONE } },
      {
        extends: true,
        test: { name: 'shared', include: SHARED, exclude: [...NOT_NOW, ...ALONE], isolate: false },
      },
    ],
    globalSetup: 'test/support/global-setup.ts',
    // Much of it waits for processes, sockets and leases: more workers than cores.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    sequence: { sequencer: LongestFirst },
    // What waits, waits for real servers, processes and builds: on a busy machine they take their time.
    testTimeout: 30_000,
    hookTimeout: 120_000,
    unstubEnvs: true,
  },
})
