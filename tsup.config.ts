import { defineConfig } from 'tsup'

const library = defineConfig({
  name: 'library',
  // Keys are output paths: the entries of package.json's exports.
  entry: {
    index: 'src/index.ts',
    core: 'src/core/index.ts',
    memory: 'adapters/memory/index.ts',
    testing: 'src/testing/index.ts',
  },
  format: ['esm', 'cjs'],
  // Without it each CommonJS entry would have a copy of the core.
  splitting: true,
  target: 'node20',
  clean: true,
  sourcemap: true,
  dts: { compilerOptions: { ignoreDeprecations: '6.0' } },
})

export default library
