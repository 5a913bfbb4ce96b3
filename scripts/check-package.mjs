// `npm run check:package`: what would be published is judged, from the build that is there, and its sizes are printed.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findBareBuiltins } from './bare-builtins.mjs'
import { pack } from './pack.mjs'
import { argumentsOf } from './stages.mjs'
import { isLight, tarballRows } from './weight.mjs'

argumentsOf()

const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
const folder = mkdtempSync(join(tmpdir(), 'once-per-key-'))

try {
  const packed = pack(folder)
  run('publint', '--strict')
  const bare = findBareBuiltins('dist')
  if (bare.length > 0) {
    console.error('These files import a module of Node without node:, so bundlers for other runtimes do not find it:')
    console.error(bare.join('\n'))
    process.exitCode = 1
  }
  print(packed)
  if (!isLight(tarballRows(packed))) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function run(program, ...args) {
  execFileSync(npm, ['exec', '--', program, ...args], { stdio: 'inherit' })
}

function print({ files }) {
  const kinds = new Map()
  for (const { path, size: bytes } of files) {
    const kind = path.startsWith('dist/') ? path.replace(/^[^.]+/, '*') : path.replace(/^docs\/.*/, 'docs/*')
    const { count, total } = kinds.get(kind) ?? { count: 0, total: 0 }
    kinds.set(kind, { count: count + 1, total: total + bytes })
  }
  for (const [kind, { count, total }] of [...kinds].sort(([, a], [, b]) => b.total - a.total)) {
    console.log(`${kb(total)}  ${kind}${count === 1 ? '' : ` (${count} files)`}`)
  }
}

function kb(bytes) {
  return `${(bytes / 1_000).toFixed(1)} kB`.padStart(10)
}
