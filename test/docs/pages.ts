import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export interface Page {
  /** Such as `docs/errors.md`. */
  readonly path: string
  readonly text: string
}

export interface Block {
  readonly page: string
  readonly language: string
  readonly code: string
  /** The file that the paragraph above it names, as in "From [recipes/order.ts](…)"; empty: none. */
  readonly file: string
}

/** The README and every page of docs/. */
export const PAGES: readonly Page[] = [
  'README.md',
  ...readdirSync(`${ROOT}docs`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => posix.join('docs', name.replaceAll('\\', '/')))
    .sort(),
].map((path) => ({ path, text: read(path) }))

export const BLOCKS: readonly Block[] = PAGES.flatMap(({ path, text }) =>
  [...text.matchAll(/((?:^.+\n)*)\n?^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, above = '', language = '', code = '']) => {
    const [, link = ''] = [...above.matchAll(/[Ff]rom\s\[[^\]]*\]\(([^)#]+)\)/g)].at(-1) ?? []
    return { page: path, language, code, file: link === '' ? '' : posix.join(posix.dirname(path), link) }
  }),
)

/** A page without its blocks of code. */
export function proseOf(page: Page): string {
  return page.text.replace(/^```[\s\S]*?^```$/gm, '')
}

export function page(path: string): string {
  const found = PAGES.find((each) => each.path === path)
  if (found === undefined) throw new Error(`There is no page ${path}.`)
  return found.text
}

export function read(path: string): string {
  return readFileSync(`${ROOT}${path}`, 'utf8')
}
