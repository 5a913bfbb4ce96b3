import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Mutant } from './mutant.js'

/** The library's source files, by their paths from the project's root. */
export type Sources = ReadonlyMap<string, string>

/** Where the library's sources lie. */
export const SOURCE_FOLDERS = ['src', 'adapters'] as const

export async function readSources(root: string): Promise<Sources> {
  const sources = new Map<string, string>()
  for (const folder of SOURCE_FOLDERS) {
    for (const name of await readdir(join(root, folder), { recursive: true })) {
      if (name.endsWith('.ts')) sources.set(join(folder, name), await readFile(join(root, folder, name), 'utf8'))
    }
  }
  return sources
}

/** A text of the sources, and what replaces it. */
export type Fault = Pick<Mutant, 'name' | 'find' | 'replace'>

/**
 * The one file that the fault is in, with it. The text is looked for in all files, whatever its line breaks and its
 * indentation, so that code which moves takes its faults along.
 *
 * @throws Error when the text does not stand in the sources exactly once: the fault would be another than its name says.
 */
export function plant(
  { name, find, replace }: Fault,
  sources: Sources,
): { readonly path: string; readonly text: string } {
  const places = [...sources].flatMap(([path, text]) => [...text.matchAll(patternOf(find))].map(() => path))
  const [path] = places
  if (path === undefined || places.length > 1) {
    const where = path === undefined ? 'nowhere' : `in ${places.join(', ')}`
    throw new Error(`"${name}": its text must stand in the sources once; it stands ${where}: ${find}`)
  }
  const text = sources.get(path) as string
  return { path, text: text.replace(patternOf(find), () => replace) }
}

function patternOf(text: string): RegExp {
  const words = text.trim().split(/\s+/)
  return new RegExp(words.map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('\\s+'), 'g')
}
