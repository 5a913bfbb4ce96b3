import dictionary from 'dictionary-en-gb'
import nspell from 'nspell'
import { describe, expect, test } from 'vitest'
import { PAGES, proseOf, read } from '../../../test/docs/pages.js'

/** Words of the field that the dictionary lacks: names, and what is written as a word of English by everybody. */
const OURS = new Set(
  `adapter Adyen Agentic agentic Galera Grafana async axios cors cron deduplication docstring durations expiries failover hono Hono http idempotency
  Deno Fastify ioredis json Koa Knex ky Kysely middleware namespace namespaces nestarc observability Observability optimizer parsers pino
  httpapi ietf Inngest pipelining pooler Postgres Powertools
  preflight Prisma Razorpay redelivery redis resolver runtimes savepoint Sequelize serialization serverless Shopify sqlite supertest Svix
  validators Valkey verifier Vitest webhook workerd zod
  accessor accessors Anthropic googleapis graphql gzipped Kiota minified npm Octokit ofetch openai pipelined superagent Twilio undici unhandled
  validator`.split(/\s+/),
)

const spelling = nspell(Buffer.from(dictionary.aff), Buffer.from(dictionary.dic))
const OTHERS = ['CONTRIBUTING.md', 'RELEASING.md', 'SECURITY.md', 'test/README.md'].map((path) => ({
  path,
  text: read(path),
}))

describe('the prose is spelt as in British English', () => {
  test.each([...PAGES, ...OTHERS])('$path', (page) => {
    expect(misspelt(proseOf(page))).toEqual([])
  })

  test('a mistake is found, also in a table, and no name in code', () => {
    expect(misspelt('A respons is `retryAfterMs`, [see](misspelld.md).\n| the anwser | PUT |')).toEqual([
      'respons',
      'anwser',
    ])
  })
})

function misspelt(prose: string): string[] {
  const words = prose
    .replace(/`[^`]*`/g, ' ')
    .replace(/\[[^\]]*\.\w+\]\([^)]*\)/g, ' ') // a file is named as it is
    .replace(/\]\([^)]*\)|<[^>]*>|https?:\S+|[\w-]+\.(?:md|js|ts|json|conf)\b|@[\w/-]+|\bidempot-js\b/g, ' ')
    .match(/\p{L}[\p{L}'’]+/gu)
  return (words ?? [])
    .map((word) => word.replaceAll('’', "'").replace(/'s?$/, ''))
    .filter((word) => word.length > 2 && !/^\p{Lu}+s?$/u.test(word) && !/\p{Ll}\p{Lu}/u.test(word))
    .filter((word) => !isOurs(word) && !isOurs(word.toLowerCase()) && !spelling.correct(word))
}

function isOurs(word: string): boolean {
  return OURS.has(word) || OURS.has(word.replace(/s$/, ''))
}
