import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'

/** Runs a command to its end; rejects, with all that it printed, when it fails. */
export async function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(command, [...args], { cwd, env: environment(), maxBuffer: 2 ** 26 })
    return stdout
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string }
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout ?? ''}${stderr ?? error}`)
  }
}

/** Packs the package as it would be published, from the build that is there, into a new temporary folder. */
export async function packPackage(): Promise<{ folder: string; tarball: string; remove(): Promise<void> }> {
  if (!existsSync(join(ROOT, 'dist/index.d.cts'))) await run(npm, ['run', '--silent', 'build'], ROOT)
  const folder = await mkdtemp(join(tmpdir(), 'once-per-key-'))
  return {
    folder,
    tarball: join(folder, JSON.parse(await run(process.execPath, ['scripts/pack.mjs', folder], ROOT)).filename),
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/** A project with nothing but the packed package: what `npm install` makes of it, without a network. */
export async function installInto(project: string, tarball: string, type: 'module' | 'commonjs'): Promise<void> {
  await mkdir(project, { recursive: true })
  const lruCache = await pack(join(ROOT, 'node_modules/lru-cache'), project)
  const dependencies = { 'lru-cache': `file:${lruCache}`, 'once-per-key': `file:${tarball}` }
  await writeFile(join(project, 'package.json'), JSON.stringify({ private: true, type, dependencies }))
  await run(npm, ['install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts'], project)
}

async function pack(source: string, destination: string): Promise<string> {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', destination]
  const [packed] = JSON.parse(await run(npm, args, source)) as { filename: string }[]
  return join(destination, packed?.filename ?? '')
}

/** Without what a surrounding `npm test` or vitest says to its own children. */
function environment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(npm_|vitest|node_env$|node_options$)/i.test(name))
  return Object.fromEntries(kept)
}
