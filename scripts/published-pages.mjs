// `prepack` and `postpack`: in the package, a link to what is not in it shows the project's address, or the file's name, and alerts
// link to the pages at that address.
// The pages are changed while they are packed, and then put back.
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import { addressOf, documentationOf, fileAddress } from './address.mjs'

/** What was changed, and into what. */
const CHANGED = '.published-pages.json'
/** npm packs them whatever `files` says. */
const ALWAYS = ['README.md', 'LICENSE', 'package.json']

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [what, ...more] = process.argv.slice(2)
  if (more.length > 0 || (what !== 'write' && what !== 'restore')) {
    console.error('usage: node scripts/published-pages.mjs write|restore')
    process.exit(1)
  }
  if (what === 'write') write()
  else restore()
}

function write() {
  restore() // a run that was broken off
  const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
  const changed = {}
  for (const path of pagesIn(manifest)) {
    const written = readFileSync(path, 'utf8')
    const published = publishedPage(path, written, manifest)
    if (published !== written) changed[path] = { written, published }
  }
  writeFileSync(CHANGED, JSON.stringify(changed))
  for (const [path, { published }] of Object.entries(changed)) writeFileSync(path, published)
}

/** A page that somebody has edited since then stays. */
function restore() {
  if (!existsSync(CHANGED)) return
  for (const [path, { written, published }] of Object.entries(JSON.parse(readFileSync(CHANGED, 'utf8')))) {
    if (readFileSync(path, 'utf8') === published) writeFileSync(path, written)
  }
  rmSync(CHANGED)
}

function pagesIn(manifest) {
  const places = ['README.md', ...manifest.files.filter((name) => !name.startsWith('!') && name !== 'dist')]
  const files = places.flatMap((place) =>
    statSync(place).isDirectory()
      ? readdirSync(place, { recursive: true }).map((name) => posix.join(place, name.replaceAll('\\', '/')))
      : [place],
  )
  return files.filter((path) => /\.(?:md|yml)$/.test(path) && isPublished(path, manifest))
}

export function isPublished(path, { files }) {
  if (ALWAYS.includes(path)) return true
  const isNamed = (names) => names.some((name) => path === name || path.startsWith(`${name}/`))
  const left = files.filter((name) => name.startsWith('!')).map((name) => name.slice(1))
  return isNamed(files) && !isNamed(left)
}

/** `text` of the page `path` as it is published. Blocks of code stay as they are. */
export function publishedPage(path, text, manifest) {
  if (path.endsWith('.yml')) return withAddress(text, manifest)
  const whole = path === 'CHANGELOG.md' ? withoutUnreleased(text) : text
  return whole
    .split(/^(```[\s\S]*?^```$)/m)
    .map((part) => (part.startsWith('```') ? part : withoutDeadLinks(part, path, manifest)))
    .join('')
}

/** Where alerts point to, as messages do: the folder in the package, as long as there is no address. */
function withAddress(rules, manifest) {
  return rules.replaceAll(`runbook_url: ${manifest.name}/docs/`, `runbook_url: ${documentationOf(manifest)}/`)
}

function withoutDeadLinks(prose, page, manifest) {
  const targetOf = (link) => (link === '' ? page : posix.join(posix.dirname(page), link))
  const isDead = (link) => !/^[a-z]+:/i.test(link) && !isPublished(targetOf(link), manifest)
  const withoutPictures = addressOf(manifest) === null ? prose.replace(/\n<picture>[\s\S]*?<\/picture>\n/g, '') : prose
  return withoutPictures
    .replace(/\b(src|srcset)="([^"]+)"/g, (all, name, link) =>
      isDead(link) ? `${name}="${fileAddress(manifest, targetOf(link)).replace('/blob/', '/raw/')}"` : all,
    )
    .replace(/\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)/g, (all, words, link, heading = '') =>
      isDead(link) ? inPlaceOf(words, targetOf(link), heading, manifest) : all,
    )
}

function inPlaceOf(words, path, heading, manifest) {
  const address = fileAddress(manifest, path)
  if (address !== null) return `[${words}](${address}${heading})`
  const name = `\`${path}\``
  return path.endsWith(words.replaceAll('`', '')) ? name : `${words} (${name} in the repository)`
}

/** Without the sections of earlier versions that were never released: nobody has them. */
function withoutUnreleased(changelog) {
  const [head = '', newest = '', ...older] = changelog.split(/^(?=## \[)/m)
  return [head, newest, ...older.filter((section) => !/^## \[.*unreleased$/im.test(section))].join('')
}
