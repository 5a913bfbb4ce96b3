import { defineConfig } from 'vitest/config'
import whole, { PACKAGED } from './vitest.config.js'

const { projects: _projects, coverage: _coverage, ...test } = whole.test ?? {}

/** `npm run test:package`: the packed package, as its users have it. */
export default defineConfig({
  resolve: whole.resolve ?? {}, // The package by its own name.
  test: { ...test, include: PACKAGED },
})
