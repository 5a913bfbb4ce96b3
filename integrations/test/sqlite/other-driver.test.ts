import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import { DRIVER_NAMES } from '../../../test/adapters/sqlite/drivers.js'
import { installNode } from '../../../test/support/node-binary.mjs'

vi.setConfig({ testTimeout: 900_000 })

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
/** The laws and the histories go over all SQL databases. */
const SUITE = ['test/adapters/sqlite', 'test/adapters/sql/store-laws.test.ts', 'test/adapters/sql/histories.test.ts']

test('better-sqlite3 and libSQL are tried here, and the interface of node:sqlite', () => {
  expect(DRIVER_NAMES.toSorted()).toEqual(['better-sqlite3', 'libsql', 'node:sqlite'])
})

// Node 20 has no `node:sqlite`: there the root’s tests of the store run once more, on a Node that has it.
test('node:sqlite is tried, here or on another Node', async () => {
  if (process.getBuiltinModule('node:sqlite') !== undefined) return
  const node = installNode(24)
  if (node === undefined) throw new Error('A Node with node:sqlite could not be installed, so it was not tried.')
  const { code, output } = await outputOf(node, ['node_modules/vitest/vitest.mjs', 'run', ...SUITE])
  expect(code, output).toBe(0)
  const passed = /Tests\s+(\d+) passed/.exec(output)?.[1]
  expect(Number(passed), output).toBeGreaterThan(500)
})

function outputOf(
  node: string,
  args: readonly string[],
): Promise<{ readonly code: number | null; readonly output: string }> {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(VITEST|NODE_|FORCE_COLOR|TEST$|ONCE_PER_KEY_BETTER)/.test(name),
  )
  const env = { ...Object.fromEntries(kept), NO_COLOR: '1' }
  return new Promise((resolve, reject) => {
    const child = spawn(node, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    }
    child.once('error', reject).once('close', (code) => resolve({ code, output }))
  })
}
