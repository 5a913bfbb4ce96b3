import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import supertest from 'supertest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BuiltExample, buildExample } from '../support/built-example.js'
import { startExample } from './example-process.js'
import { readFeed } from './feed-reader.js'
import { expectRefusal } from './operations-table.js'
import { type Service, startService } from './payments-service.js'

const folder = fileURLToPath(new URL('../../examples/payments/playground/page', import.meta.url))
const files = await readdir(folder)

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml; charset=utf-8',
}

let service: Service

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.stop())

const pathOf = (file: string) => (file === 'index.html' ? '/' : `/playground/${file}`)

describe.each(files)('%s', (file) => {
  test('is served with its type, and with a policy that lets nothing in from elsewhere', async () => {
    const response = await fetch(service.origin + pathOf(file))
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')?.replace(/^image\/svg\+xml$/, TYPES.svg as string)).toBe(
      TYPES[file.split('.').at(-1) as string],
    )
    expect(response.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; script-src 'self'; style-src 'self';(?!.*(unsafe|\*|http|data:))/,
    )
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(await response.text()).toBe(await readFile(`${folder}/${file}`, 'utf8'))
  })

  test('is asked for again by its ETag, and by HEAD', async () => {
    // Not by `fetch`, which asks past every copy where a request has conditions of its own.
    const { headers } = await supertest(service.origin).head(pathOf(file))
    const { status } = await supertest(service.origin)
      .get(pathOf(file))
      .set('If-None-Match', headers.etag as string)
    expect([status, headers['cache-control']]).toEqual([304, 'no-cache'])
  })
})

test('the page names only what is served', async () => {
  const html = await readFile(`${folder}/index.html`, 'utf8')
  const named = [...html.matchAll(/(?:href|src)="(\/[^"]*)"/g)].map(([, path]) => path)
  expect(named.length).toBeGreaterThan(5)
  expect(files.map(pathOf)).toEqual(expect.arrayContaining(named))
  expect(html).not.toMatch(/https?:|<style|style="|<script(?![^>]*src)/)
})

test.each([
  ['/', 'POST', 'method_not_allowed', 405],
  ['/playground/main.js', 'POST', 'method_not_allowed', 405],
  ['/playground/', 'GET', 'path_not_found', 404],
  ['/playground/index.html', 'GET', 'path_not_found', 404],
  ['/playground/missing.js', 'GET', 'path_not_found', 404],
  ['/playground/..%2fapp.ts', 'GET', 'path_not_found', 404],
  ['/index.html', 'GET', 'path_not_found', 404],
])('%s by %s is a problem', async (path, method, code, status) => {
  expectRefusal(await service.send(path, { method }), code, status)
})

describe('the built example', () => {
  let example: BuiltExample

  beforeAll(async () => {
    example = await buildExample()
  }, 60_000)

  afterAll(() => example.remove())

  test('names the page first, and serves all of it', async () => {
    const { origin, output } = await startExample(example)
    expect(output().split('\n')[0]).toContain(origin)
    for (const file of files) expect([file, (await fetch(origin + pathOf(file))).status]).toEqual([file, 200])
  })

  test('ends with a feed open', async () => {
    const { child, origin, exit } = await startExample(example)
    const feed = await readFeed(origin, 'a')
    await feed.next()
    child.kill('SIGTERM')
    expect(await feed.next()).toBeNull()
    expect(await exit()).toBe(0)
  }, 4_500)
})
