import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'

/**
 * better-sqlite3, as a project of its users has it: the real one where ONCE_PER_KEY_BETTER_SQLITE3 names its folder, else a
 * package that opens files as it does, by Node's own driver or the package of the same interface.
 */
export async function installBetterSqlite3(modules: string): Promise<void> {
  const place = join(modules, 'better-sqlite3')
  const { ONCE_PER_KEY_BETTER_SQLITE3: real } = process.env
  if (real !== undefined) return symlink(real, place, 'junction')
  await mkdir(place)
  await writeFile(join(place, 'package.json'), '{ "type": "module", "exports": "./index.js" }')
  await writeFile(join(place, 'index.js'), standIn(createRequire(import.meta.url).resolve('@photostructure/sqlite')))
}

const standIn = (driver: string) => `
import { createRequire } from 'node:module'
const own = process.getBuiltinModule('node:sqlite')
const { DatabaseSync } = own ?? createRequire(import.meta.url)(${JSON.stringify(driver)})
export default class Database extends DatabaseSync {
  constructor(file, { readonly = false } = {}) {
    super(file, { readOnly: readonly })
  }
}
`
