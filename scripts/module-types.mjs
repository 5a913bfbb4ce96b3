// Part of `npm run build`: the types of each ES module re-export those of its CommonJS twin. So nothing is in the package
// twice, and a class has one type however it is loaded.
import { readFileSync, writeFileSync } from 'node:fs'
import { argumentsOf } from './stages.mjs'

argumentsOf()

const { exports } = JSON.parse(readFileSync('package.json', 'utf8'))

for (const entry of Object.values(exports)) {
  if (typeof entry === 'string') continue // ./package.json
  const twin = entry.require.default.replace('./dist/', './')
  writeFileSync(entry.import.types, `export * from '${twin}'\n`)
}
