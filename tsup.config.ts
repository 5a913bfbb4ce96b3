import { defineConfig } from 'tsup'

const library = defineConfig({
  name: 'library',
  // Keys are output paths: the entries of package.json's exports.
  entry: {
    index: 'src/index.ts',
    core: 'src/core/index.ts',
    memory: 'adapters/memory/index.ts',
    redis: 'adapters/redis/index.ts',
    webhooks: 'src/webhooks/index.ts',
    testing: 'src/testing/index.ts',
  },
  format: ['esm', 'cjs'],
  // Without it each CommonJS entry would have a copy of the core.
  splitting: true,
  // Rollup writes the CommonJS files; without it they are rewritten syntax by syntax, and name this machine's folders.
  treeshake: true,
  target: 'node20',
  clean: true,
  dts: { compilerOptions: { ignoreDeprecations: '6.0' } },
})

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
  clean: true,
  // Packages stay imports: the built example gets the library by its own name, through package.json's exports.
  external: [/^once-per-key(\/|$)/, 'express', 'ioredis', 'pino', 'zod'],
})

export default [library, example]
