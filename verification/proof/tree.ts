import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Options } from 'tsup'
import configs from '../../tsup.config.js'
import type { Mutant } from './mutants/mutant.js'
import { plant, readSources, SOURCE_FOLDERS } from './mutants/planting.js'
import proof from './tsup.config.js'

/** The same from here as from the built program, which lies as deep. */
const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A folder with the package, the example and the proof, built: there the programs find the package by its name. */
export interface Tree {
  readonly root: string
  remove(): Promise<void>
}

/** Builds today's sources; the tree is also the pattern of those with a fault. */
export async function buildTree(): Promise<Tree> {
  const tree = await emptyTree()
  await buildLibrary(ROOT, tree.root)
  await buildInto(join(tree.root, 'build'), configOf('example'))
  await buildInto(join(tree.root, 'build/proof'), proof as Options)
  return tree
}

/** The same programs over a library with a fault in it. */
export async function plantedTree(mutant: Mutant, pattern: Tree): Promise<Tree> {
  const tree = await emptyTree()
  const sources = join(tree.root, 'sources')
  for (const folder of SOURCE_FOLDERS) await cp(join(ROOT, folder), join(sources, folder), { recursive: true })
  const { path, text } = plant(mutant, await readSources(ROOT))
  await writeFile(join(sources, path), text)
  await buildLibrary(sources, tree.root)
  await cp(join(pattern.root, 'build'), join(tree.root, 'build'), { recursive: true })
  return tree
}

async function emptyTree(): Promise<Tree> {
  const root = await mkdtemp(join(tmpdir(), 'once-per-key-proof-'))
  await mkdir(join(root, 'build'))
  await cp(join(ROOT, 'package.json'), join(root, 'package.json'))
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'), 'dir')
  return { root, remove: () => rm(root, { recursive: true, force: true }) }
}

async function buildLibrary(sources: string, root: string): Promise<void> {
  const { entry, ...options } = configOf('library')
  const entries = Object.entries(entry as Record<string, string>).map(([name, path]) => [name, join(sources, path)])
  const tsconfig = join(ROOT, 'tsconfig.json')
  await buildInto(join(root, 'dist'), {
    ...options,
    entry: Object.fromEntries(entries),
    format: 'esm',
    dts: false,
    // Rollup and the compiler make it smaller, and each trial slower.
    treeshake: false,
    plugins: [],
    tsconfig,
  })
}

function configOf(name: string): Options {
  return (configs as Options[]).find((config) => config.name === name) as Options
}

async function buildInto(outDir: string, options: Options): Promise<void> {
  await build({ ...options, outDir, config: false, silent: true, clean: false })
}
