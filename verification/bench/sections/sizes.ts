import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'tsup'
import type { Table } from '../table.js'

/** The sources of each entry, by the names that an application imports: those of tsconfig.json. */
async function entries(): Promise<Record<string, readonly string[]>> {
  const { compilerOptions } = JSON.parse(await readFile('tsconfig.json', 'utf8'))
  const face = compilerOptions.paths['once-per-key']
  return {
    ...compilerOptions.paths,
    'once-per-key + memory': [...face, ...compilerOptions.paths['once-per-key/memory']],
    'once-per-key + redis': [...face, ...compilerOptions.paths['once-per-key/redis']],
  }
}

export interface Sizes {
  /** Of `once-per-key + memory`, minified and gzipped. */
  readonly withMemoryBytes: number
  readonly table: Table
}

/** What a bundler would ship of one entry, minified and gzipped, in bytes. */
export async function minifiedAndGzipped(source: string): Promise<number> {
  return zipped(await bundled([source], true))
}

/** What a bundler would ship of each entry, the code that it shares with others included; packages are left out. */
export async function measureSizes(): Promise<Sizes> {
  const rows: string[][] = []
  let withMemoryBytes = Number.NaN
  for (const [name, sources] of Object.entries(await entries())) {
    const minified = await bundled(sources, true)
    if (name === 'once-per-key + memory') withMemoryBytes = zipped(minified)
    const bytes = [minified.byteLength, zipped(minified), zipped(await bundled(sources, false))]
    rows.push([name, ...bytes.map((each) => each.toLocaleString('en'))])
  }
  return {
    withMemoryBytes,
    table: {
      title: 'Size of each entry (ESM), bytes',
      columns: ['', 'minified', 'minified, gzipped', 'gzipped'],
      rows,
      notes: ['Each with all that it needs of this package; other packages are left out.'],
    },
  }
}

async function bundled(sources: readonly string[], minify: boolean): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'once-per-key-size-'))
  try {
    const entry = join(folder, 'entry.ts')
    await writeFile(entry, sources.map((source) => `export * from ${JSON.stringify(resolve(source))}\n`).join(''))
    await build({
      entry: { entry },
      outDir: join(folder, 'out'),
      outExtension: () => ({ js: '.mjs' }),
      format: 'esm',
      target: 'node20',
      minify,
      external: [/^[^./]/],
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
