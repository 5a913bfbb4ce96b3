// Before Node 22.13, which brings node:sqlite, a package of the same interface stands for it: for programs that tests start.
import { createRequire } from 'node:module'

const { getBuiltinModule } = process
if (getBuiltinModule('node:sqlite') === undefined) {
  const sqlite = createRequire(import.meta.url)('@photostructure/sqlite')
  process.getBuiltinModule = (name) => (name === 'node:sqlite' ? sqlite : getBuiltinModule(name))
}
