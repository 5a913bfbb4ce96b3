// `npm run test:integrations [-- PART…]`: packs the package, installs it into `integrations` beside other people's packages, and
// runs the tests there. Without a part: all but the browser's.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pack } from './pack.mjs'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const FOLDER = join(ROOT, 'integrations')
const MODULES = join(FOLDER, 'node_modules')
/** Folders with versions of Nest that cannot be beside the newest one. */
const OLDER = ['nest/10', 'nest/11']
/** Folders with a lock file of their own; the tracers use the package that is beside the others. */
const INSTALLED = ['.', ...OLDER, 'tracers']
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'

/** Arguments of vitest for each part. */
const tests = (...projects) => ['integrations/vitest.config.ts', ...projects.flatMap((name) => ['--project', name])]
const PARTS = {
  recipes: tests('recipes'),
  clients: tests('clients'),
  tracers: tests('tracers'),
  package: tests('package'),
  suites: tests('suites'),
  browser: ['integrations/test/browser/vitest.config.ts'],
  coverage: ['integrations/coverage.config.ts'],
  screenshots: ['integrations/test/browser/screenshots.config.ts'],
}
const EVERYDAY = ['recipes', 'clients', 'tracers', 'package', 'suites']

const parts = process.argv.slice(2)
const unknown = parts.filter((part) => !(part in PARTS))
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(', ')} of the integrations: ${Object.keys(PARTS).join(', ')}.`)
  process.exit(2)
}

try {
  install()
  tell('building and packing once-per-key')
  run(npm, ['run', '--silent', 'build'])
  installPacked()
  tell('types')
  run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', 'integrations'])
  const chosen = parts.length > 0 ? parts : EVERYDAY
  for (const [index, part] of chosen.entries()) {
    tell(`${part} (${index + 1} of ${chosen.length})`)
    if (part === 'package') judgeTypes()
    run(process.execPath, [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--config', ...PARTS[part]])
  }
} catch (error) {
  if (error.status === undefined) throw error
  // It has said by itself what is wrong.
  process.exit(error.status ?? 1)
}

/** Other people's packages, once for each set of lock files. */
function install() {
  const stamp = join(MODULES, '.installed')
  const hash = createHash('sha256')
  for (const part of INSTALLED) hash.update(readFileSync(join(FOLDER, part, 'package-lock.json')))
  const lock = hash.digest('hex')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return
  tell('installing other people’s packages (1.1 GB, a minute or two)')
  for (const part of INSTALLED) {
    run(npm, ['ci', '--prefix', join('integrations', part), '--ignore-scripts', '--no-audit', '--no-fund'])
  }
  tell('compiling better-sqlite3 (half a minute)')
  run(npm, ['rebuild', '--prefix', 'integrations', 'better-sqlite3'])
  writeFileSync(stamp, lock)
}

/** As its users get it: what `npm publish` would send, unpacked. */
function installPacked() {
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-'))
  try {
    const { filename } = pack(folder)
    for (const part of ['.', ...OLDER]) {
      const home = join(FOLDER, part, 'node_modules/once-per-key')
      rmSync(home, { recursive: true, force: true })
      mkdirSync(home)
      run('tar', ['-xzf', join(folder, filename), '-C', home, '--strip-components', '1'])
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** By whether each way to resolve a package finds types that fit what it loads. */
function judgeTypes() {
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-'))
  try {
    run(process.execPath, [join(MODULES, '@arethetypeswrong/cli/dist/index.js'), join(folder, pack(folder).filename)])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function run(command, args) {
  execFileSync(command, args, { cwd: ROOT, stdio: 'inherit' })
}

function tell(what) {
  console.log(`integrations: ${what}`)
}
