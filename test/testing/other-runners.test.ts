import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runNode } from '../support/run-node.js'
import { type TranspiledPackage, transpiledPackage } from '../support/transpiled-package.js'

let installed: TranspiledPackage

beforeAll(async () => {
  installed = await transpiledPackage()
})

afterAll(() => installed.remove())

/** The first example of the docstring: a store that is made of the machine, on trial. */
async function documentedExample(): Promise<string> {
  const source = await readFile(new URL('../../src/testing/store/store-laws.ts', import.meta.url), 'utf8')
  const example = /@example\n(?<code>(?: \*.*\n)+?) \*\n \* A store with its own clock/.exec(source)?.groups?.code ?? ''
  return example.replaceAll(/^ \* ?/gm, '')
}

describe('the documented example', () => {
  test('runs as it stands on node:test, and keeps every law', async () => {
    const file = await installed.write('laws.test.mjs', (await documentedExample()).replace("'vitest'", "'node:test'"))
    const { exitCode, stdout } = await runNode('--test', '--test-reporter=tap', file)
    expect(stdout).toMatch(/^# fail 0$/m)
    expect(Number(/^# pass (\d+)$/m.exec(stdout)?.[1])).toBeGreaterThan(150)
    expect(exitCode).toBe(0)
  }, 60_000)

  test('fails on node:test, by the name of the law, once it breaks one', async () => {
    const forgets = "record.state === 'failed' ? { ...record, uncertain: false, fingerprint: null } : record"
    const example = (await documentedExample()).replace('rows.set(key, record)', `rows.set(key, ${forgets})`)
    const file = await installed.write('broken.test.mjs', example.replace("'vitest'", "'node:test'"))
    const { exitCode, stdout } = await runNode('--test', '--test-reporter=tap', file)
    expect(stdout).toMatch(/^ *not ok \d+ - .*uncertain/m)
    expect(stdout).toContain('Broken: ')
    expect(exitCode).not.toBe(0)
  }, 60_000)
})

test('the suite imports no test runner', async () => {
  const { exitCode, stdout } = await runNode(
    '--input-type=module',
    '--eval',
    `import { storeLaws } from '${new URL(`file://${installed.folder}/node_modules/once-per-key/src/testing/index.js`)}'
    const names = []
    storeLaws((name) => names.push(name), async () => { throw new Error('not opened') })
    console.log(names.length)`,
  )
  expect(exitCode).toBe(0)
  expect(Number(stdout)).toBeGreaterThan(150)
})
