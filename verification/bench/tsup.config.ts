import { defineConfig } from 'tsup'

/** The benchmark as programs of its own, which find the package by its name, through package.json's exports. */
export default defineConfig({
  name: 'bench',
  entry: {
    bench: 'verification/bench/bench.main.ts',
    service: 'verification/bench/service.main.ts',
    generator: 'verification/bench/generator.main.ts',
    micro: 'verification/bench/micro.main.ts',
    size: 'verification/bench/size.main.ts',
  },
  outDir: 'build/bench',
  format: 'esm',
  target: 'node20',
  // Packages stay imports: each program measures what is installed.
  external: [/^[^./]/],
})
