import { defineConfig } from 'tsup'

/** The benchmark as programs of its own, which find the package by its name, through package.json's exports. */
export default defineConfig({
  name: 'bench',
  entry: {
    bench: 'verification/bench/bench.main.ts',
    scale: 'verification/bench/scale/scale.main.ts',
    service: 'verification/bench/service.main.ts',
    generator: 'verification/bench/generator.main.ts',
    fingerprints: 'verification/bench/scale/fingerprints.main.ts',
    size: 'verification/bench/size.main.ts',
  },
  outDir: 'build/bench',
  format: 'esm',
  target: 'node20',
  // Packages stay imports: each program measures what is installed.
  external: [/^[^./]/],
})
