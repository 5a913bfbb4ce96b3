import { defineConfig } from 'tsup'

/** The proof as programs of its own, which find the package by its name, through package.json's exports. */
export default defineConfig({
  name: 'proof',
  entry: {
    prove: 'verification/proof/prove.ts',
    'run-layer': 'verification/proof/run-layer.ts',
    'fuzz-service': 'verification/proof/fuzz/service.main.ts',
    'soak-service': 'verification/proof/soak/service.main.ts',
    'soak-script': 'verification/proof/soak/script.main.ts',
    'soak-snapshot': 'verification/proof/soak/snapshot.main.ts',
    'chaos-service': 'verification/proof/chaos/service.main.ts',
    'commit-service': 'verification/proof/commit/service.main.ts',
  },
  outDir: 'build/proof',
  format: 'esm',
  target: 'node20',
  // Packages, devDependencies among them, stay imports.
  external: [/^[^./]/],
})
