// Writes each code block of the README and the pages anew from the file that the paragraph above it names, as in
// "From [recipes/order.ts](…):" - `npm run docs:blocks`.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { argumentsOf } from '../stages.mjs'

argumentsOf()

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** The paragraph above a block, the name of its file, and the block, of a language whose files are shown whole. */
const BLOCK = /((?:^.+\n)+)(\n```(?:js|ts|sql|conf)\n)[\s\S]*?^```$/gm
const SOURCE = /[Ff]rom\s\[[^\]]*\]\(([^)#]+)\)/g

const pages = readdirSync(join(ROOT, 'docs'), { recursive: true })
  .filter((name) => name.endsWith('.md'))
  .map((name) => join('docs', name))

for (const page of ['README.md', ...pages]) {
  const text = readFileSync(join(ROOT, page), 'utf8')
  const filled = text.replace(BLOCK, (block, above, fence) => {
    const [, link] = [...above.matchAll(SOURCE)].at(-1) ?? []
    if (link === undefined) throw new Error(`${page}: no file is named above\n${block}`)
    return `${above}${fence}${readFileSync(join(ROOT, dirname(page), link), 'utf8')}\`\`\``
  })
  if (filled !== text) writeFileSync(join(ROOT, page), filled)
}
