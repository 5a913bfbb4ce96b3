import { isBuiltin } from 'node:module'
import { posix } from 'node:path'
import { type Import, importsOf, onlyReExports } from './imports.js'

/** Source files by their path in the project, such as `src/core/engine.ts`. */
export type Files = ReadonlyMap<string, string>

interface Layer {
  readonly files: RegExp
  /** Files of the project that it may import. */
  readonly mayImport: RegExp
  /** Packages that it may import; Node's own modules it may import always. */
  readonly packages: RegExp
}

const NONE = /^$/
/** What browsers load. */
const PAGE = /^examples\/payments\/playground\/page\//
const OWN_NAME = /^once-per-key(\/.+)?$/

/** Who may import whom. The first layer that a file belongs to decides. */
const LAYERS: readonly Layer[] = [
  { files: /^src\/core\/(machine|store)\.ts$/, mayImport: /^src\/core\/record\.ts$/, packages: NONE },
  { files: /^src\/core\//, mayImport: /^src\/core\//, packages: NONE },
  { files: /^src\/index\.ts$/, mayImport: /^src\/(core|express)\//, packages: NONE },
  { files: /^src\/express\//, mayImport: /^src\/(core|express)\//, packages: NONE },
  { files: /^src\/webhooks\//, mayImport: /^src\/(core|webhooks)\//, packages: /^zod\/v4$/ },
  { files: /^src\/testing\//, mayImport: /^src\/(core|testing)\//, packages: NONE },
  { files: /^adapters\/memory\//, mayImport: /^(src\/core|adapters\/memory)\//, packages: /^lru-cache$/ },
  { files: /^adapters\/redis\//, mayImport: /^(src\/core|adapters\/redis)\//, packages: NONE },
  { files: PAGE, mayImport: PAGE, packages: NONE },
  { files: /^examples\//, mayImport: /^examples\//, packages: /./ },
]

const MOST_LINES = 260
const FORBIDDEN_NAMES = /^(utils?|helpers?|common|misc|types?|shared)$/

/** Every breach of the architecture, one sentence each. */
export function breachesIn(files: Files): string[] {
  return [...importBreaches(files), ...cycleBreaches(files), ...shapeBreaches(files)]
}

function importBreaches(files: Files): string[] {
  return [...files].flatMap(([path, text]) => {
    const layer = LAYERS.find((candidate) => candidate.files.test(path))
    if (layer === undefined) return [`${path} belongs to no layer`]
    return importsOf(path, text)
      .filter((one) => !isAllowed(one, path, layer, files))
      .map(({ specifier }) => `${path} may not import ${specifier}`)
  })
}

function isAllowed({ specifier }: Import, from: string, layer: Layer, files: Files): boolean {
  if (specifier.startsWith('.')) {
    const target = targetOf(specifier, from)
    return files.has(target) && layer.mayImport.test(target)
  }
  if (PAGE.test(from)) return false
  if (isBuiltin(specifier)) return specifier.startsWith('node:')
  const isOutsider = from.startsWith('examples/')
  if (OWN_NAME.test(specifier)) return isOutsider
  return /^[@a-z]/.test(specifier) && layer.packages.test(specifier)
}

/** As NodeNext resolves it: the specifier names the compiled file. Browsers load files as they are. */
function targetOf(specifier: string, from: string): string {
  const named = posix.join(posix.dirname(from), specifier)
  return PAGE.test(from) ? named : named.replace(/\.js$/, '.ts')
}

/** No file waits, at run time, for one that waits for it. */
function cycleBreaches(files: Files): string[] {
  const done = new Set<string>()
  const breaches: string[] = []
  const walk = (path: string, way: readonly string[]): void => {
    if (way.includes(path)) {
      breaches.push(`${[...way.slice(way.indexOf(path)), path].join(' -> ')} is a cycle`)
      return
    }
    if (done.has(path)) return
    for (const { specifier, typeOnly } of importsOf(path, files.get(path) ?? '')) {
      const target = specifier.startsWith('.') ? targetOf(specifier, path) : ''
      if (!typeOnly && files.has(target)) walk(target, [...way, path])
    }
    done.add(path)
  }
  for (const path of files.keys()) walk(path, [])
  return breaches
}

function shapeBreaches(files: Files): string[] {
  return [...files].flatMap(([path, text]) => {
    const name = posix.basename(path, '.ts')
    const isOurs = !path.startsWith('examples/')
    const lines = text.trimEnd().split('\n').length
    const breaches: string[] = []
    if (name === 'index' && !onlyReExports(path, text)) breaches.push(`${path} does more than re-export`)
    if (isOurs && FORBIDDEN_NAMES.test(name)) breaches.push(`${path} is named after no idea`)
    if (isOurs && lines > MOST_LINES) breaches.push(`${path} has ${lines} lines, more than ${MOST_LINES}`)
    return breaches
  })
}
