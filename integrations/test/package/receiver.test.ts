import { copyFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { installInto, packPackage, ROOT, run } from '../../../test/support/packed-package.js'

// Installing and compiling take seconds, and more on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let packed: Awaited<ReturnType<typeof packPackage>>
beforeAll(async () => {
  packed = await packPackage()
})
afterAll(() => packed?.remove())

test.each(['module', 'commonjs'] as const)(
  'a receiver of any sender compiles, starts and handles an event once without zod, in a project of type %s',
  async (type) => {
    const home = join(packed.folder, type)
    await installInto(home, packed.tarball, type)
    expect(await readdir(join(home, 'node_modules'))).not.toContain('zod')
    await copyFile(join(ROOT, 'integrations/test/package/consumers/receiver.ts'), join(home, 'receiver.ts'))
    const types = join(ROOT, 'node_modules/@types')
    const flags = ['--module', 'NodeNext', '--target', 'ES2022', '--strict', '--typeRoots', types, '--types', 'node']
    await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), ...flags, 'receiver.ts'], home)
    expect(JSON.parse(await run(process.execPath, ['receiver.js'], home))).toEqual({
      statuses: [200, 200],
      totals: [9900],
      refusal: 'parse: expected a function; seen: undefined',
    })
  },
)

test('the document’s receiver needs zod, so that the test above would find an import of it', async () => {
  const home = join(packed.folder, 'documented')
  await installInto(home, packed.tarball, 'module')
  await expect(run(process.execPath, ['-e', "import('once-per-key/webhooks')"], home)).rejects.toThrow(/'zod'/)
})
