import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { installInto, packPackage, ROOT } from '../../../test/support/packed-package.js'
import { freePort } from '../../../test/support/redis-server.js'
import { INTEGRATIONS, installed } from './installed.js'

/** A new project with the packed package, and with whatever else an application gets by `npm i`. */
export async function pastedProject(): Promise<{ readonly folder: string; remove(): Promise<void> }> {
  const packed = await packPackage()
  const folder = join(packed.folder, 'pasted')
  await installInto(folder, packed.tarball, 'module')
  for (const name of new Set([...(await packagesOf(INTEGRATIONS)), ...(await packagesOf(ROOT))])) {
    const link = join(folder, 'node_modules', name)
    await mkdir(dirname(link), { recursive: true })
    await symlink(installed(name), link, 'junction')
  }
  return { folder, remove: packed.remove }
}

async function packagesOf(project: string): Promise<string[]> {
  const { devDependencies } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8'))
  return Object.keys(devDependencies)
}

export interface Served {
  readonly port: number
  /** All that it has printed. */
  said(): string
  /** Null as long as it runs. */
  exitCode(): number | null
  readonly ended: Promise<unknown>
}

/** Starts a server file on a free port, until the test ends; resolves with its first words, or when it has ended. */
export async function serveFile(
  file: string,
  env: Readonly<Record<string, string>> = {},
  { args = [], cwd }: { readonly args?: readonly string[]; readonly cwd?: string } = {},
): Promise<Served> {
  const port = await freePort()
  const child = spawn(process.execPath, [file, ...args], {
    cwd,
    env: { PATH: process.env.PATH, PORT: `${port}`, ...env },
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => {
      text += bytes
    })
  }
  const ended = once(child, 'close')
  onTestFinished(() => void child.kill('SIGKILL'))
  await Promise.race([once(child.stdout, 'data'), ended])
  return { port, said: () => text, exitCode: () => child.exitCode, ended }
}
