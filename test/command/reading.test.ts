import { createHash } from 'node:crypto'
import { copyFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { ANSWER, claimOf, ownOf } from '../adapters/claims.js'
import { A_DRIVER } from '../adapters/sqlite/drivers.js'
import { newFolder, openStore } from '../adapters/sqlite/open-store.js'
import { build, command } from './built-command.js'

// Real processes on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 240_000 })
beforeAll(build)

const READING = {
  unknown: ['unknown'],
  inspect: ['inspect', 'acme', 'paid'],
  stats: ['stats'],
  doctor: ['doctor'],
  'forget --dry-run': ['forget', '--scope', 'acme', '--dry-run'],
}

/** The file of a service that runs, with records in its -wal file. */
async function service() {
  const opened = openStore(A_DRIVER)
  await opened.store.complete('acme:paid', { ...ownOf('owner'), answer: ANSWER })
  await opened.store.begin('acme:runs', claimOf('runs'))
  return opened
}

function emptyFolder(): string {
  const { folder, remove } = newFolder()
  onTestFinished(remove)
  return folder
}

function contentsOf(of: string): object {
  // SQLite keeps the locks of readers in the -shm file.
  const names = readdirSync(of).filter((name) => !name.endsWith('-shm'))
  return Object.fromEntries(
    names.map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(of, name)))
        .digest('hex'),
    ]),
  )
}

describe.each(Object.entries(READING))('%s changes no byte', (_name, args) => {
  test('of a copy by VACUUM INTO, and its journal is told as it is', async () => {
    const { database } = await service()
    const folder = emptyFolder()
    const file = join(folder, 'copy.db')
    database.exec(`VACUUM INTO '${file}'`)
    const before = contentsOf(folder)
    for (const _ of ['first', 'again']) {
      const { stdout, stderr } = await command([...args, '--sqlite', file])
      expect([stdout, stderr]).toEqual([expect.stringContaining(args[0] === 'doctor' ? 'journal: delete' : ''), ''])
    }
    expect(contentsOf(folder)).toEqual(before)
  })

  test('of what a service left that was killed', async () => {
    const { file } = await service()
    const left = emptyFolder()
    for (const end of ['', '-wal']) copyFileSync(`${file}${end}`, join(left, `records.db${end}`))
    const before = contentsOf(left)
    expect((await command([...args, '--sqlite', join(left, 'records.db')])).stderr).toBe('')
    expect(contentsOf(left)).toEqual(before)
  })

  test('of the file of a service that was stopped, and leaves no other', async () => {
    const { database, file } = await service()
    database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() // Not every driver's `close` is the last: statements may be open.
    database.close()
    const stopped = emptyFolder()
    copyFileSync(file, join(stopped, 'records.db'))
    const before = contentsOf(stopped)
    expect((await command([...args, '--sqlite', join(stopped, 'records.db')])).stderr).toBe('')
    expect(contentsOf(stopped)).toEqual(before)
    expect(readdirSync(stopped)).toEqual(['records.db'])
  })
})
