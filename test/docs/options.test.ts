import { execFileSync } from 'node:child_process'
import { type IdempotencyOptions, singleTenant } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { resolveRequestOptions } from '../../src/http/options/option-rules.js'
import { page, ROOT, read } from './pages.js'

const options = page('docs/options.md')
const ofTheMiddleware = options.slice(options.indexOf('## idempotency'), options.indexOf('## bodyField'))
/** What any operation has as options, and what requests add. */
const source = read('src/core/options/engine-options.ts') + read('src/http/options/options.ts')

/** Without what is required, what is no plain value, and what only a profile has. */
const {
  store: _,
  scope: __,
  problemStatuses: ___,
  keyPerPath: ____,
  echoesKey: _____,
  methods,
  ...defaults
} = resolveRequestOptions({
  store: new MemoryStore(),
  scope: singleTenant,
})

test('the page of options is what the docstrings say', () => {
  execFileSync(process.execPath, ['scripts/docs/options.mjs', '--check'], { cwd: ROOT, stdio: 'pipe' })
})

test('it lists every option, and no other', () => {
  const listed = [...ofTheMiddleware.matchAll(/^### `(\w+)`/gm)].map(([, name]) => name)
  expect(listed.toSorted()).toEqual(Object.keys(OPTIONS).toSorted())
})

describe('what is said of a default is so', () => {
  test.each(Object.entries(defaults))('%s: %s', (name, value) => {
    const inSource = typeof value === 'number' ? value.toLocaleString('en-US').replaceAll(',', '_') : written(value)
    const docstring = source
      .slice(0, source.indexOf(`readonly ${name}?:`))
      .split('@default')
      .at(-1)
    expect(docstring).toMatch(new RegExp(`^ ${inSource}[: ]`))
    const entry = ofTheMiddleware.split(/^### /m).find((each) => each.startsWith(`\`${name}\``))
    expect(entry).toContain(`**Default:** \`${inSource}\``)
  })

  test('the methods are those that the page and the docstring name', () => {
    expect(ofTheMiddleware).toContain(`**Default:** \`[${methods.map(written).join(', ')}]\``)
    expect(source).toContain(`@default [${methods.map(written).join(', ')}]`)
  })
})

describe('an option is required, says the page,', () => {
  const entries = options.split(/^### /m).slice(1)
  const required = entries.filter((entry) => /^`\w+` \(required/.test(entry))

  test('where it has no default', () => {
    expect(required.length).toBeGreaterThan(10)
    expect(required.filter((entry) => entry.includes('**Default:**'))).toEqual([])
  })

  test('or which other one may stand in its place', () => {
    const headings = options.match(/^### .* or .*$/gm)
    expect(headings).toEqual([
      '### `client` (required, or `sendCommand`)',
      '### `sendCommand` (required, or `client`)',
      '### `pool` (required, or `query`)',
      '### `query` (required, or `pool`)',
    ])
  })
})

function written(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value)
}

/** Complete by the compiler: an option that is missing here, or one too many, does not compile. */
const OPTIONS: Record<keyof IdempotencyOptions, true> = {
  store: true,
  scope: true,
  profile: true,
  documentation: true,
  header: true,
  required: true,
  methods: true,
  skip: true,
  legacyKey: true,
  fingerprint: true,
  firstSent: true,
  isSuccess: true,
  isCertainFailure: true,
  keepFailure: true,
  effects: true,
  keepHeader: true,
  streams: true,
  maxStepBytes: true,
  leaseMs: true,
  maxRunMs: true,
  retentionMs: true,
  unknownRetentionMs: true,
  clockSkewMs: true,
  inFlightWaitMs: true,
  retryAfterMs: true,
  unknownOutcome: true,
  unconfirmedSuccess: true,
  storeTimeoutMs: true,
  storeFailure: true,
  maxAnswerBytes: true,
  renderProblem: true,
  problemStatuses: true,
  onEvent: true,
}
