import { defineConfig } from 'tsup'

/** The services with the library from its sources: what is counted is this state of it, without a build. */
export default defineConfig({
  entry: { services: 'verification/cost/services.main.ts', parts: 'verification/cost/parts.main.ts' },
  outDir: 'build/cost',
  format: 'esm',
  target: 'node20',
  clean: true,
  splitting: false,
  noExternal: [/^once-per-key/],
  external: ['express', 'fastify', 'hono', 'ioredis', 'koa', 'koa-bodyparser', 'lru-cache', 'pg'],
})
