import { isBuiltin } from 'node:module'
import { posix } from 'node:path'
import { longFunctionsIn } from './functions.js'
import { type Import, importsOf, onlyReExports } from './imports.js'

/** Source files by their path in the project, such as `src/core/engine/engine.ts`. */
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
/** It runs in browsers, and needs nothing of the package. */
const CLIENT = /^src\/client\//
/** By what a stranger can import: `once-per-key/core` and `once-per-key/http`. */
const CORE = String.raw`src/core/index\.ts$`
const HTTP = String.raw`src/http/(index|every-binding)\.ts$`
const ANY_SENDER = 'src/webhooks/receiver/(?!documented-)'
const EVENT_ERROR = String.raw`src/webhooks/events/event-error\.ts$`
const EVERY_STORE = String.raw`adapters/every-store\.ts$`
const OWN_NAME = /^once-per-key(\/.+)?$/

/** The files and folders of the project that begin so; a name that ends with `$` is that file alone. */
function oneOf(...places: readonly string[]): RegExp {
  return new RegExp(`^(${places.join('|')})`)
}

/** Groups of files of a folder: each may import its own group and those before it. */
function inOrder(folder: string, groups: readonly (readonly string[])[]): Layer[] {
  return groups.map((group, i) => ({
    files: oneOf(...group.map((name) => folder + name)),
    mayImport: oneOf(
      ...groups
        .slice(0, i + 1)
        .flat()
        .map((name) => folder + name),
    ),
    packages: NONE,
  }))
}

/** Who may import whom. The first layer that a file belongs to decides. */
const LAYERS: readonly Layer[] = [
  // Inside the core: each folder may import those before it.
  ...inOrder('src/core/', [
    ['errors.ts', 'json.ts', 'maybe-promise.ts', 'misuse.ts', 'validation.ts'],
    ['record/'],
    ['store/'],
    ['events/'],
    ['options/'],
    ['calls/'],
    ['run/'],
    ['transaction/'],
    ['operator/'],
    ['engine/'],
    ['index.ts'],
  ]),
  // The entry once-per-key/core, with the engine for bindings.
  { files: /^src\/core\.ts$/, mayImport: oneOf(CORE, HTTP), packages: NONE },
  { files: /^src\/index\.ts$/, mayImport: oneOf(CORE, HTTP, 'src/express/'), packages: NONE },
  { files: /^src\/http\/options\//, mayImport: oneOf('src/core/', 'src/http/options/'), packages: NONE },
  ...['request', 'answer'].map((part) => ({
    files: oneOf(`src/http/${part}/`),
    mayImport: oneOf('src/core/', 'src/http/options/', `src/http/${part}/`),
    packages: NONE,
  })),
  { files: /^src\/http\//, mayImport: oneOf('src/core/', 'src/http/'), packages: NONE },
  { files: /^src\/node\//, mayImport: oneOf('src/core/', 'src/http/', 'src/node/'), packages: NONE },
  { files: /^src\/express\//, mayImport: oneOf(CORE, HTTP, 'src/node/', 'src/express/'), packages: NONE },
  { files: /^src\/fetch\//, mayImport: oneOf(CORE, HTTP, 'src/fetch/'), packages: NONE },
  { files: /^src\/fastify\//, mayImport: oneOf(CORE, HTTP, 'src/node/', 'src/fastify/'), packages: /^fastify$/ },
  { files: /^src\/koa\//, mayImport: oneOf(CORE, HTTP, 'src/node/', 'src/koa/'), packages: /^koa$/ },
  {
    files: /^src\/nest\//,
    mayImport: oneOf(CORE, HTTP, 'src/node/', 'src/express/', 'src/fastify/', 'src/nest/'),
    packages: /^(@nestjs\/(common|core)|fastify|rxjs)$/,
  },
  { files: /^src\/hono\//, mayImport: oneOf(CORE, HTTP, 'src/fetch/', 'src/hono/'), packages: /^hono$/ },
  { files: /^src\/webhooks\/index\.ts$/, mayImport: oneOf(CORE, 'src/webhooks/'), packages: NONE },
  { files: /^src\/webhooks\/events\//, mayImport: oneOf(CORE, 'src/webhooks/events/'), packages: /^zod\/v4$/ },
  { files: /^src\/webhooks\/signatures\//, mayImport: oneOf(CORE, HTTP, 'src/webhooks/signatures/'), packages: NONE },
  // The events are the default, where no `parse` is given. What serves any sender does without them, and without zod.
  {
    files: /^src\/webhooks\/receiver\/documented-/,
    mayImport: oneOf(CORE, HTTP, 'src/node/', 'src/webhooks/receiver/', 'src/webhooks/events/'),
    packages: NONE,
  },
  {
    files: /^src\/webhooks\/receiver\/index\.ts$/,
    mayImport: oneOf(CORE, HTTP, ANY_SENDER, EVENT_ERROR, 'src/webhooks/signatures/'),
    packages: NONE,
  },
  {
    files: /^src\/webhooks\/receiver\//,
    mayImport: oneOf(CORE, HTTP, 'src/node/', 'src/fetch/', ANY_SENDER, EVENT_ERROR),
    packages: NONE,
  },
  {
    files: /^src\/opentelemetry\//,
    mayImport: oneOf(CORE, 'src/opentelemetry/'),
    packages: /^(@opentelemetry\/api|lru-cache)$/,
  },
  { files: /^src\/run\//, mayImport: oneOf(CORE, 'src/run/'), packages: NONE },
  { files: /^src\/client-node\//, mayImport: oneOf('src/client/', 'src/client-node/'), packages: NONE },
  { files: CLIENT, mayImport: CLIENT, packages: NONE },
  { files: /^src\/testing\//, mayImport: oneOf(CORE, HTTP, 'src/testing/'), packages: NONE },
  // The types that each of them exports.
  { files: /^adapters\/every-store\.ts$/, mayImport: oneOf(CORE), packages: NONE },
  { files: /^adapters\/memory\//, mayImport: oneOf(CORE, EVERY_STORE, 'adapters/memory/'), packages: /^lru-cache$/ },
  // What the stores in SQL databases have in common.
  { files: /^adapters\/sql\//, mayImport: oneOf(CORE, EVERY_STORE, 'adapters/sql/'), packages: NONE },
  { files: /^adapters\/postgres\//, mayImport: oneOf(CORE, 'adapters/sql/', 'adapters/postgres/'), packages: NONE },
  { files: /^adapters\/mysql\//, mayImport: oneOf(CORE, 'adapters/sql/', 'adapters/mysql/'), packages: NONE },
  { files: /^adapters\/sealed\//, mayImport: oneOf(CORE, EVERY_STORE, 'adapters/sealed/'), packages: NONE },
  { files: /^adapters\/sqlite\//, mayImport: oneOf(CORE, 'adapters/sql/', 'adapters/sqlite/'), packages: NONE },
  { files: /^adapters\/redis\//, mayImport: oneOf(CORE, EVERY_STORE, 'adapters/redis/'), packages: NONE },
  // The command is a user of the package, with a driver for each store.
  { files: /^bin\//, mayImport: oneOf('bin/'), packages: /^(better-sqlite3|ioredis|mysql2(\/promise)?|pg)$/ },
  { files: PAGE, mayImport: PAGE, packages: NONE },
  { files: /^examples\//, mayImport: oneOf('examples/'), packages: /./ },
]

/** The command's `--store FILE`. */
const LOADS_WHAT_IT_IS_TOLD = 'bin/target.ts'

const MOST_LINES = 350
const MOST_FILES = 14
const MOST_FILES_OF_SRC = 173
const MOST_LINES_OF_A_FUNCTION = 60
const FORBIDDEN_NAMES = /^(utils?|helpers?|common|misc|types?|shared)$/

/** Every breach of the architecture, one sentence each. */
export function breachesIn(files: Files): string[] {
  return [importBreaches, cycleBreaches, shapeBreaches, folderBreaches, countBreaches].flatMap((find) => find(files))
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
  if (PAGE.test(from) || CLIENT.test(from)) return false
  if (from === LOADS_WHAT_IT_IS_TOLD && specifier === '(computed)') return true
  if (isBuiltin(specifier)) return specifier.startsWith('node:')
  const isOutsider = /^(examples|bin)\//.test(from)
  if (OWN_NAME.test(specifier)) return isOutsider
  return /^[@a-z]/.test(specifier) && layer.packages.test(specifier)
}

/** As NodeNext resolves it: the specifier names the compiled file. Browsers load files as they are. */
function targetOf(specifier: string, from: string): string {
  const named = posix.join(posix.dirname(from), specifier)
  return PAGE.test(from) ? named : named.replace(/\.js$/, '.ts')
}

/** No file needs one that needs it, be it for a type alone; in the examples, whose books list every kind of entry, at run time. */
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
      if (files.has(target) && !(typeOnly && path.startsWith('examples/'))) walk(target, [...way, path])
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
    for (const { name, lines } of isOurs ? longFunctionsIn(path, text, MOST_LINES_OF_A_FUNCTION) : []) {
      breaches.push(`${path}: ${name} has ${lines} lines, more than ${MOST_LINES_OF_A_FUNCTION}`)
    }
    return breaches
  })
}

/** Folders that nobody takes in at a glance. */
function folderBreaches(files: Files): string[] {
  const counts = new Map<string, number>()
  for (const path of files.keys()) {
    const folder = posix.dirname(path)
    if (/^(src|adapters|bin)\//.test(path)) counts.set(folder, (counts.get(folder) ?? 0) + 1)
  }
  return [...counts]
    .filter(([, count]) => count > MOST_FILES)
    .map(([folder, count]) => `${folder} has ${count} files side by side, more than ${MOST_FILES}`)
}

function countBreaches(files: Files): string[] {
  const count = [...files.keys()].filter((path) => path.startsWith('src/')).length
  return count > MOST_FILES_OF_SRC ? [`src has ${count} files, more than ${MOST_FILES_OF_SRC}`] : []
}
