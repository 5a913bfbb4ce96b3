// `npm run weight`: what the package weighs, measured on what is built, against the bars that it must keep.
// `npm run weight -- install` measures a fresh clone, too: `npm ci`, and `npm start` until it answers.
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { pack } from './pack.mjs'

const root = fileURLToPath(new URL('../', import.meta.url))
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** What 0.2 had. Each entry that came later may add so much to the tarball. */
const FIRST =
  '. ./core ./http ./client ./fetch ./hono ./fastify ./koa ./memory ./redis ./postgres ./sqlite ./sealed ./run ./webhooks ./opentelemetry ./testing'.split(
    ' ',
  )
const LATER = Object.keys(manifest.exports).filter((entry) => entry !== './package.json' && !FIRST.includes(entry))
/** What came later and is no entry of its own: each may add as much. */
const LATER_WAYS = [
  'one transaction and no claim',
  'steps',
  'profiles',
  'expectOnce',
  'errors, requests and responses of other packages',
]
const BARS = {
  packed: 450_000 + (LATER.length + LATER_WAYS.length) * 25_000,
  unpacked: 1_800_000 + (LATER.length + LATER_WAYS.length) * 100_000,
  laterEntry: 25_000,
  /** One that is a whole store on a server, with its statements, its transactions and its errors. */
  laterStore: 34_000,
  bundle: 24_000,
  importMs: 30,
  /** Of the time that express-rate-limit takes, where that is installed. */
  importRatio: 30 / 28,
  installSeconds: 30,
  installMB: 250,
  startSeconds: 40,
}
const IMPORTS = 21
const LATER_STORES = ['./mysql']

/** What the bars of the tarball say of what npm packed: also a part of `npm run check:package`. */
export function tarballRows({ size, unpackedSize }) {
  return [
    row('tarball, packed', size / 1_000, BARS.packed / 1_000, 'kB'),
    row('tarball, unpacked', unpackedSize / 1_000, BARS.unpacked / 1_000, 'kB'),
    ...LATER.map((entry) => row(`${nameOf(entry)} adds, packed`, addedBy(entry) / 1_000, barOf(entry) / 1_000, 'kB')),
  ]
}

/** Prints the rows; false if one is above its bar. */
export function isLight(rows) {
  for (const { what, seen, bar, unit, isKept } of rows) {
    const line = `${seen.toFixed(1).padStart(9)} ${unit.padEnd(3)} ${what}, at most ${bar.toFixed(1).replace('.0', '')}`
    console.log(`${line}${isKept ? '' : '  MISSED'}`)
  }
  return rows.every(({ isKept }) => isKept)
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const args = process.argv.slice(2)
  if (args.some((arg) => arg !== 'install')) {
    console.error(`npm run weight: unknown argument ${args.find((arg) => arg !== 'install')}. There is one: install`)
    process.exit(1)
  }
  const rows = [...inFolder((folder) => tarballRows(pack(folder))), await bundleRow(), importRow()]
  if (args.includes('install')) rows.push(...(await installRows()))
  if (!isLight(rows)) process.exitCode = 1
}

function row(what, seen, bar, unit) {
  return { what, seen, bar, unit, isKept: seen <= bar }
}

function barOf(entry) {
  return LATER_STORES.includes(entry) ? BARS.laterStore : BARS.laterEntry
}

function nameOf(entry) {
  return entry.replace('.', manifest.name)
}

/** The files that no other entry needs, compressed together. */
function addedBy(entry) {
  const others = new Set(
    Object.keys(manifest.exports)
      .filter((other) => other !== entry)
      .flatMap(filesOf),
  )
  const own = filesOf(entry).filter((file) => !others.has(file))
  return gzipSync(Buffer.concat(own.map((file) => readFileSync(join(root, file)))), { level: 9 }).byteLength
}

function filesOf(entry) {
  const target = manifest.exports[entry]
  if (typeof target === 'string') return []
  const found = new Set()
  const visit = (file) => {
    if (found.has(file)) return
    found.add(file)
    const text = readFileSync(join(root, file), 'utf8')
    for (const [, path] of text.matchAll(/(?:from |require\(|import )['"]\.\/([^'"]+)['"]/g)) {
      visit(`dist/${file.endsWith('ts') ? path.replace(/\.cjs$/, '.d.cts') : path}`)
    }
  }
  for (const { types, default: code } of [target.import, target.require]) {
    for (const file of [types, code]) visit(file.replace('./', ''))
  }
  return [...found]
}

/** What a bundler would ship of `.` with the memory store, without lru-cache. */
async function bundleRow() {
  const contents = "export * from './dist/index.js'\nexport * from './dist/memory.js'"
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: ['lru-cache'],
    write: false,
    logLevel: 'silent',
  })
  const bytes = gzipSync(outputFiles[0].contents, { level: 9 }).byteLength
  return row(`${manifest.name} with the memory store, minified and gzipped`, bytes / 1_000, BARS.bundle / 1_000, 'kB')
}

/** Fresh processes, by turns, so that a busy moment is nobody's alone. */
function importRow() {
  const ours = pathToFileURL(join(root, manifest.exports['.'].import.default)).href
  const theirs = resolved('express-rate-limit')
  const times = { ours: [], theirs: [] }
  for (let i = 0; i < IMPORTS; i++) {
    times.ours.push(importMs(ours))
    if (theirs !== null) times.theirs.push(importMs(theirs))
  }
  const ms = median(times.ours)
  if (theirs === null)
    return row(`import of ${manifest.name}, without express-rate-limit to compare`, ms, BARS.importMs, 'ms')
  const other = median(times.theirs)
  return row(
    `import of ${manifest.name}, where express-rate-limit takes ${other.toFixed(1)}`,
    ms,
    other * BARS.importRatio,
    'ms',
  )
}

function resolved(name) {
  try {
    return pathToFileURL(createRequire(join(root, 'package.json')).resolve(name)).href
  } catch {
    return null
  }
}

function importMs(url) {
  const code = `const from = performance.now(); await import(${JSON.stringify(url)}); console.log(performance.now() - from)`
  return Number(execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' }))
}

function median(times) {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]
}

/** What is committed, cloned: `npm ci`, and what it takes until the example answers. */
async function installRows() {
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-clone-'))
  try {
    execFileSync('git', ['clone', '--quiet', '--depth', '1', pathToFileURL(root).href, folder])
    const begun = performance.now()
    execFileSync(npm, ['ci', '--no-audit', '--no-fund'], { cwd: folder, stdio: 'ignore' })
    const installed = performance.now()
    await answered(folder)
    const seconds = (from, to) => (to - from) / 1_000
    return [
      row('npm ci of a fresh clone', seconds(begun, installed), BARS.installSeconds, 's'),
      row('what it installs', bytesIn(join(folder, 'node_modules')) / 1e6, BARS.installMB, 'MB'),
      row('npm ci && npm start, until it answers', seconds(begun, performance.now()), BARS.startSeconds, 's'),
    ]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Starts the example, and ends it as soon as it has answered. */
async function answered(cwd) {
  const child = spawn(process.execPath, ['scripts/start.mjs'], { cwd, env: { ...process.env, PORT: '0', HOST: '' } })
  try {
    let said = ''
    for await (const text of child.stdout.setEncoding('utf8')) {
      said += text
      const [origin] = /http:\/\/[\w.]+:\d+/.exec(said) ?? []
      if (origin !== undefined) return void (await fetch(origin))
    }
    throw new Error('npm start ended before it listened.')
  } finally {
    child.kill('SIGKILL')
  }
}

function bytesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}

function inFolder(act) {
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-'))
  try {
    return act(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
