import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import whole, { LONG } from './vitest.config.js'

// The workers inherit it.
process.env.ONCE_PER_KEY_TESTS = 'long'

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

/** `npm run test:long`: what `npm test` leaves out, and at its full length what it tries for seconds. */
export default defineConfig({ resolve: whole.resolve ?? {}, test: { ...test, include: [...LONG, ...more] } })
