import { defineConfig } from 'tsup'

/** The benchmark as programs of its own, which find the package by its name, through package.json's exports. */
export default defineConfig({
  name: 'bench',
  entry: {
    bench: 'test/bench/bench.main.ts',
    service: 'test/bench/service.main.ts',
    generator: 'test/bench/generator.main.ts',
    micro: 'test/bench/micro.main.ts',
    size: 'test/bench/size.main.ts',
  },
  outDir: 'build/bench',
  format: 'esm',
  target: 'node20',
  // Packages stay imports: each program measures what is installed.
  external: [/^[^./]/],
})
