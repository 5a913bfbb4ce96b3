// `node scripts/pack.mjs FOLDER` packs what is built as it would be published, from a copy, and prints what npm says of it.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = fileURLToPath(new URL('../', import.meta.url))
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  console.log(JSON.stringify(pack(process.argv[2] ?? '.')))
}

/** What npm says of the tarball, which is put into `folder`: its `filename`, `files`, `size` and `unpackedSize`. */
export function pack(folder) {
  const copy = mkdtempSync(join(tmpdir(), 'once-per-key-pack-'))
  try {
    const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const shipped = files.filter((name) => !name.startsWith('!'))
    for (const name of [...shipped, 'LICENSE', 'README.md', 'package.json']) {
      cpSync(join(root, name), join(copy, name), { recursive: true })
    }
    execFileSync(process.execPath, [join(root, 'scripts/published-pages.mjs'), 'write'], { cwd: copy })
    const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', resolve(folder)]
    const [packed] = JSON.parse(execFileSync(npm, args, { cwd: copy, encoding: 'utf8' }))
    return packed
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}
