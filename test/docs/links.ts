import { posix } from 'node:path'
import { type Page, proseOf } from './pages.js'

export interface Link {
  readonly from: string
  readonly path: string
  readonly heading: string
}

export function linksOf({ path, text }: Page): Link[] {
  const prose = proseOf({ path, text })
  return [...prose.matchAll(/(?:\]\(|(?:src|srcset)=")(?!https?:)([^)"#\s]*)(?:#([^)"\s]*))?/g)].map(
    ([, link = '', heading = '']) => ({
      from: path,
      path: link === '' ? path : posix.join(posix.dirname(path), link),
      heading,
    }),
  )
}

/** As GitHub names them: in lower case, without punctuation, a dash for each space, a number for the second of a name. */
export function headingsOf(text: string): string[] {
  const seen = new Map<string, number>()
  return [...proseOf({ path: '', text }).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => {
    const name = title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-')
    const times = seen.get(name) ?? 0
    seen.set(name, times + 1)
    return times === 0 ? name : `${name}-${times}`
  })
}
