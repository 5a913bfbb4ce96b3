import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

const EXPORTS = {
  '.': './src/index.js',
  './core': './src/core.js',
  './http': './src/http/index.js',
  './memory': './adapters/memory/index.js',
  './run': './src/run/index.js',
  './sqlite': './adapters/sqlite/index.js',
  './testing': './src/testing/index.js',
  './webhooks': './src/webhooks/index.js',
}

export interface Setting {
  /** The package that is found as zod, by its name or its folder: `./webhooks` needs one. */
  readonly zod?: string
}

/** A folder where plain Node can import the package by its name: the sources without their types, file by file. */
export interface TranspiledPackage {
  /** Writes a module (TypeScript or JavaScript) into the folder; gives its path. */
  write(name: string, source: string): Promise<string>
  readonly folder: string
  remove(): Promise<void>
}

export async function transpiledPackage({ zod }: Setting = {}): Promise<TranspiledPackage> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'once-per-key-')))
  const home = join(folder, 'node_modules', 'once-per-key')
  for (const part of ['src', 'adapters']) {
    for (const entry of await readdir(join(ROOT, part), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || !entry.name.endsWith('.ts')) continue
      const path = join(entry.parentPath, entry.name)
      await put(join(home, relative(ROOT, path)).replace(/\.ts$/, '.js'), transpiled(await readFile(path, 'utf8')))
    }
  }
  await put(join(home, 'package.json'), JSON.stringify({ name: 'once-per-key', type: 'module', exports: EXPORTS }))
  const installed = { 'lru-cache': 'lru-cache', ...(zod && { zod }) }
  for (const [name, source] of Object.entries(installed)) {
    await symlink(resolve(ROOT, 'node_modules', source), join(folder, 'node_modules', name), 'junction')
  }
  return {
    folder,
    async write(name, source) {
      const path = join(folder, name)
      await put(path, transpiled(source))
      return path
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, text)
}

function transpiled(source: string): string {
  const compilerOptions = { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true }
  return ts.transpileModule(source, { compilerOptions }).outputText
}
