import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

// Before the configuration of all tests is read: it leaves out what takes long.
process.env.ONCE_PER_KEY_THOROUGH = '1'
const { default: whole, LONG } = await import('./vitest.config.js')

const ROOT = fileURLToPath(new URL('.', import.meta.url))
const { projects: _projects, ...test } = whole.test ?? {}

/** The files that do more here than each day. */
const more = ['test', 'verification']
  .flatMap((folder) =>
    readdirSync(ROOT + folder, { recursive: true, encoding: 'utf8' }).map(
      (name) => `${folder}/${name.replaceAll('\\', '/')}`,
    ),
  )
  .filter((name) => name.endsWith('.test.ts') && readFileSync(`${ROOT}${name}`, 'utf8').includes('/thoroughness.js'))

/** What `npm run test:everything` tries at its full length. */
export default defineConfig({ resolve: whole.resolve ?? {}, test: { ...test, include: [...LONG, ...more] } })
