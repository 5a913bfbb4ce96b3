import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { INTEGRATIONS } from '../support/installed.js'

const FOLDER = join(INTEGRATIONS, 'test/recipes/runners')
const JEST = [
  join(INTEGRATIONS, 'node_modules/jest/bin/jest.js'),
  '--rootDir',
  FOLDER,
  '--config',
  '{"testMatch":["**/with-jest.cjs"],"moduleFileExtensions":["cjs","js","json"],"transform":{}}',
]
const RUNNERS = { jest: JEST, 'node:test': ['--test', join(FOLDER, 'with-node.mjs')] }

test.each(Object.entries(RUNNERS))('%s shows in words what expectOnce found', (_name, args) => {
  // node:test would report to the runner that started it.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', cwd: FOLDER, env })
  const told = stdout + stderr
  expect(status, told).toBe(1)
  expect(told).toMatch(/^\W*(✓|√|✔|ok 1 -) a payout is paid once: protected true/m)
  expect(told).toMatch(/the handler ran twice: the same request was sent again with the same key/)
})
