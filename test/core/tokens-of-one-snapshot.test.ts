import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'tsup'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runNode } from '../support/run-node.js'
import { type TranspiledPackage, transpiledPackage } from '../support/transpiled-package.js'

let folder: string
let installed: TranspiledPackage

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'once-per-key-'))
  installed = await transpiledPackage()
})

afterAll(() => Promise.all([rm(folder, { recursive: true, force: true }), installed.remove()]))

// Tokens were drawn from a pool of random bytes, which was in the snapshot: all processes drew the same ones, so that two
// owned one claim.
test('processes that start from one V8 snapshot claim with tokens of their own', { timeout: 60_000 }, async () => {
  const service = fileURLToPath(new URL('../support/snapshot.main.ts', import.meta.url))
  await build({
    entry: { service },
    outDir: folder,
    outExtension: () => ({ js: '.cjs' }),
    format: 'cjs',
    target: 'node20',
    config: false,
    silent: true,
  })
  const blob = join(folder, 'service.blob')
  const built = await tokensOf('--snapshot-blob', blob, '--build-snapshot', join(folder, 'service.cjs'))
  const [one, other] = await Promise.all([1, 2].map(() => tokensOf('--snapshot-blob', blob, 'service')))
  const tokens = [...built, ...(one as string[]), ...(other as string[])]
  expect(tokens).toHaveLength(6)
  expect(new Set(tokens.map(withoutTime)).size).toBe(6)
})

test('a process that may not open the source of the kernel has tokens all the same', async () => {
  const script = await installed.write(
    'tokens.mjs',
    `import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    const { openSync } = fs
    fs.openSync = (path, ...rest) => {
      if (path === '/dev/urandom') throw new Error('not allowed')
      return openSync(path, ...rest)
    }
    syncBuiltinESMExports()
    const { createToken } = await import('./node_modules/once-per-key/src/core/record/token.js')
    console.log(createToken())
    console.log(createToken())`,
  )
  const [first, second, ...rest] = await tokensOf(script)
  expect(rest).toEqual([])
  expect(first).not.toBe(second)
})

// As in copies of one memory, which continue with the same pool.
test('two processes with the same random bits claim with tokens of their own', async () => {
  const script = await installed.write(
    'copies.mjs',
    `import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    const { openSync, readSync } = fs
    let source
    fs.openSync = (path, ...rest) => {
      const file = openSync(path, ...rest)
      if (path === '/dev/urandom') source = file
      return file
    }
    fs.readSync = (file, bytes, ...rest) => (file === source ? bytes.fill(7).byteLength : readSync(file, bytes, ...rest))
    syncBuiltinESMExports()
    const { createToken } = await import('./node_modules/once-per-key/src/core/record/token.js')
    for (let i = 0; i < 100; i++) console.log(createToken())`,
  )
  const tokens = await tokensOf(script)
  expect(new Set(tokens).size).toBe(100)
  expect(new Set(tokens.map(withoutTime)).size).toBe(1)
})

/** The part of a token that is random alone. */
function withoutTime(token: string): string {
  return Buffer.from(token, 'base64url').toString('hex', 4)
}

async function tokensOf(...args: readonly string[]): Promise<string[]> {
  const { exitCode, stdout, stderr } = await runNode(...args)
  expect(stderr).not.toMatch(/Error/)
  expect(exitCode).toBe(0)
  const tokens = stdout.trim().split('\n')
  for (const token of tokens) expect(token).toMatch(/^[\w-]{22}$/)
  return tokens
}
