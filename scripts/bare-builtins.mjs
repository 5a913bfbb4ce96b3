import { readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import ts from 'typescript'

/** A line for each file of a folder that imports a module of Node without `node:`, which bundlers for other runtimes do not find. */
export function findBareBuiltins(folder) {
  const files = readdirSync(folder, { recursive: true }).filter((file) => /\.c?[jt]s$/.test(file))
  return files.sort().flatMap((file) => {
    const { importedFiles } = ts.preProcessFile(readFileSync(join(folder, file), 'utf8'), true, true)
    const bare = importedFiles.map(({ fileName }) => fileName).filter(isBareBuiltin)
    return bare.length > 0 ? [`${file}: ${[...new Set(bare)].sort().join(', ')}`] : []
  })
}

function isBareBuiltin(name) {
  return isBuiltin(name) && !name.startsWith('node:')
}
