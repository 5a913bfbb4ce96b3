import { defineConfig } from 'tsup'

/** The proof as programs of its own, which find the package by its name, through package.json's exports. */
export default defineConfig({
  name: 'proof',
  entry: {
    prove: 'test/proof/prove.ts',
    'run-layer': 'test/proof/run-layer.ts',
    'fuzz-service': 'test/proof/fuzz/service.main.ts',
    'soak-service': 'test/proof/soak/service.main.ts',
    'soak-script': 'test/proof/soak/script.main.ts',
    'soak-snapshot': 'test/proof/soak/snapshot.main.ts',
    'chaos-service': 'test/proof/chaos/service.main.ts',
    'commit-service': 'test/proof/commit/service.main.ts',
  },
  outDir: 'build/proof',
  format: 'esm',
  target: 'node20',
  // Packages, devDependencies among them, stay imports.
  external: [/^[^./]/],
})
