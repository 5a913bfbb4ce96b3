import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { importsOf } from './imports.js'

/** What a file needs that starts another program, such as a server, or builds one. */
const STARTERS = new Set(['node:child_process', 'tsup'])

const known = new Map<string, boolean>()

/** Whether a file, or one that it imports, can start another program. */
export function startsPrograms(path: string): boolean {
  const before = known.get(path)
  if (before !== undefined) return before
  known.set(path, false) // For files that import each other.
  const starts = importsOf(path, readFileSync(path, 'utf8')).some(({ specifier, typeOnly }) => {
    if (typeOnly) return false
    if (STARTERS.has(specifier)) return true
    const imported = resolve(dirname(path), specifier.replace(/\.js$/, '.ts'))
    return specifier.startsWith('.') && existsSync(imported) && startsPrograms(imported)
  })
  known.set(path, starts)
  return starts
}
