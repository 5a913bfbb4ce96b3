// Writes the line of each stop of the tour in CONTRIBUTING.md anew, from the file and the code that the stop names:
// `npm run docs:tour`. With `--check` it writes nothing, and fails if a line is not what it would write.
import { readFileSync, writeFileSync } from 'node:fs'
import { argumentsOf } from '../stages.mjs'

const isCheck = argumentsOf('--check').includes('--check')
const ROOT = new URL('../../', import.meta.url)
const PAGE = new URL('CONTRIBUTING.md', ROOT)
/** Such as `src/core/record/machine.ts:85`, and the code that begins there. */
const STOP = /`([\w./-]+\.ts):(\d+)` \| `([^`]+)`/g

const text = readFileSync(PAGE, 'utf8')
const written = text.replace(STOP, (_stop, path, _line, code) => {
  const lines = readFileSync(new URL(path, ROOT), 'utf8').split('\n')
  const found = lines.flatMap((line, i) => (line.includes(code.replaceAll('\\|', '|')) ? [i + 1] : []))
  if (found.length !== 1)
    throw new Error(`${path} has ${found.length} lines with ${code}: name code that is there once.`)
  return `\`${path}:${found[0]}\` | \`${code}\``
})

if (written === text) process.exit()
if (isCheck) {
  console.error('The lines of the tour in CONTRIBUTING.md are not those of the code: npm run docs:tour')
  process.exit(1)
}
writeFileSync(PAGE, written)
