import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { importsOf } from '../support/imports.js'
import { page, read } from './pages.js'

const frameworks = page('docs/frameworks.md')

test('the page of frameworks lists each module of Node that they need, and no other', () => {
  const needed = ['src/core', 'src/http', 'src/fetch', 'src/hono'].flatMap((folder) =>
    readdirSync(new URL(`../../${folder}/`, import.meta.url)).flatMap((file) =>
      importsOf(file, read(`${folder}/${file}`)).flatMap(({ specifier }) =>
        specifier.startsWith('node:') ? [specifier] : [],
      ),
    ),
  )
  const [, section = ''] = frameworks.split('## What it needs of a runtime')
  expect(needed).toContain('node:crypto')
  expect(new Set([...section.matchAll(/`(node:\w+)`/g)].map(([, name]) => name))).toEqual(new Set(needed))
})
