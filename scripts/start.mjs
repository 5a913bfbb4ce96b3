// `npm start`: builds the payments example and the library, without its types, and starts it.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { argumentsOf } from './stages.mjs'

argumentsOf()

const root = new URL('../', import.meta.url)
const tsup = new URL('node_modules/tsup/dist/cli-default.js', root)

console.log('building…')
// The types that are there stay: whoever packs the package builds them anew.
execFileSync(process.execPath, [fileURLToPath(tsup), '--silent', '--no-dts', '--no-clean'], {
  cwd: fileURLToPath(root),
  stdio: 'inherit',
})
await import(new URL('build/examples/payments/main.js', root).href)
