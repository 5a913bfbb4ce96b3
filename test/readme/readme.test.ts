import { readFileSync } from 'node:fs'
import type { IdempotencyOptions } from 'once-per-key'
import { storeLaws } from 'once-per-key/testing'
import { describe, expect, test } from 'vitest'
import { mapStore } from '../../examples/map-store.js'

const readme = read('../../README.md')

describe('the README', () => {
  test.each([
    ['./quick-start.ts', '// README: the first example\n'],
    ['./webhooks.ts', '// README: the webhook example\n'],
    ['./operator.ts', '// README: the operator example\n'],
  ])('shows the example in %s, which the compiler has checked', (file, mark) => {
    const [, example] = read(file).split(mark)
    expect(readme).toContain(`\`\`\`ts\n${example}\`\`\``)
  })

  test('shows the body parser in ./raw-body.ts, which the compiler has checked', () => {
    const [, parser] = read('./raw-body.ts').trimEnd().split('export const keepsBytes = ')
    expect(readme).toContain(`\`${parser}\``)
  })

  test('lists every option, and no other', () => {
    const section = readme.slice(readme.indexOf('## Options'), readme.indexOf('Mistakes are reported at once'))
    const listed = [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name)
    expect(listed.toSorted()).toEqual(Object.keys(OPTIONS).toSorted())
  })

  test('shows the store that obeys the laws', () => {
    expect(readme).toContain(`\`\`\`ts\n${read('../../examples/map-store.ts')}\`\`\``)
  })
})

describe("the README's store obeys the store laws", () => {
  storeLaws(test, async () => {
    let nowMs = 0
    const advance = (ms: number) => {
      nowMs += ms
    }
    return { store: mapStore(() => nowMs), advance }
  })
})

function read(relative: string): string {
  return readFileSync(new URL(relative, import.meta.url), 'utf8')
}

/** Complete by the compiler: an option that is missing here, or one too many, does not compile. */
const OPTIONS: Record<keyof IdempotencyOptions, true> = {
  store: true,
  scope: true,
  header: true,
  required: true,
  methods: true,
  skip: true,
  legacyKey: true,
  fingerprint: true,
  isSuccess: true,
  keepHeader: true,
  leaseMs: true,
  maxRunMs: true,
  retentionMs: true,
  inFlightWaitMs: true,
  retryAfterMs: true,
  unknownOutcome: true,
  storeTimeoutMs: true,
  storeFailure: true,
  maxAnswerBytes: true,
  renderProblem: true,
  problemStatuses: true,
  onEvent: true,
}
