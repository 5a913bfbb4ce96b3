import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'tsup'
import type { Table } from '../table.js'

const ENTRIES: Readonly<Record<string, readonly string[]>> = {
  'once-per-key': ['src/index.ts'],
  'once-per-key/core': ['src/core/index.ts'],
  'once-per-key/memory': ['adapters/memory/index.ts'],
  'once-per-key/redis': ['adapters/redis/index.ts'],
  'once-per-key/webhooks': ['src/webhooks/index.ts'],
  'once-per-key + memory': ['src/index.ts', 'adapters/memory/index.ts'],
  'once-per-key + redis': ['src/index.ts', 'adapters/redis/index.ts'],
}

export interface Sizes {
  /** Of `once-per-key + memory`, minified and gzipped. */
  readonly withMemoryBytes: number
  readonly table: Table
}

/** What a bundler would ship of each entry, the code that it shares with others included; packages are left out. */
export async function measureSizes(): Promise<Sizes> {
  const rows: string[][] = []
  let withMemoryBytes = Number.NaN
  for (const [name, sources] of Object.entries(ENTRIES)) {
    const plain = await bundled(sources, false)
    const minified = await bundled(sources, true)
    if (name === 'once-per-key + memory') withMemoryBytes = zipped(minified)
    rows.push([name, ...[minified.byteLength, zipped(minified), zipped(plain)].map(kibibytes)])
  }
  return {
    withMemoryBytes,
    table: {
      title: 'Size of each entry (ESM), KiB',
      columns: ['', 'minified', 'minified, gzipped', 'gzipped'],
      rows,
      notes: ['Each with all that it needs of the package, lru-cache and zod aside.'],
    },
  }
}

async function bundled(sources: readonly string[], minify: boolean): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'once-per-key-size-'))
  try {
    const entry = join(folder, 'entry.ts')
    await writeFile(
      entry,
      sources.map((source) => `export * from ${JSON.stringify(join(process.cwd(), source))}\n`).join(''),
    )
    await build({
      entry: { entry },
      outDir: join(folder, 'out'),
      outExtension: () => ({ js: '.mjs' }),
      format: 'esm',
      target: 'node20',
      minify,
      external: ['lru-cache', /^zod/],
      config: false,
      silent: true,
    })
    return await readFile(join(folder, 'out/entry.mjs'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function zipped(code: Buffer): number {
  return gzipSync(code, { level: 9 }).byteLength
}

function kibibytes(bytes: number): string {
  return (bytes / 1_024).toFixed(1)
}
