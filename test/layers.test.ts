import { existsSync, readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test, vi } from 'vitest'
import { importsOf } from './support/imports.js'
import { breachesIn, type Files } from './support/layers.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

// The compiler reads every source.
vi.setConfig({ testTimeout: 120_000 })

describe('the sources', () => {
  test('keep to the architecture: who imports whom, no cycles, short files, honest names', async () => {
    const files = await sourceFiles()
    expect([...files.keys()]).toContain('src/core/record/machine.ts')
    expect(importsOf('', [...files.values()].join('\n')).length).toBeGreaterThan(100)
    expect(breachesIn(files)).toEqual([])
  })

  test('name every package that they import in the manifest', async () => {
    const manifest = manifestOf('.')
    // Its own name, where the check of the layers allows that. What gives types alone is no peer: npm would compare its version.
    const published = { ...manifest.dependencies, ...manifest.peerDependencies, [manifest.name]: '' }
    const known = { ...published, ...manifest.devDependencies }
    for (const [path, text] of await sourceFiles()) {
      for (const { specifier, typeOnly } of importsOf(path, text)) {
        if (/^(\.|node:|\(computed\))/.test(specifier)) continue
        const name = specifier.match(/^(@[^/]+\/)?[^/]+/)?.[0] ?? specifier
        const named = path.startsWith('examples/') ? { ...known, ...ownOf(path) } : typeOnly ? known : published
        expect(Object.keys(named), path).toContain(name)
      }
    }
  })

  test('import nothing of integrations, and no test does', async () => {
    for (const folder of ['src', 'adapters', 'bin', 'examples', 'test', 'scripts']) {
      for (const entry of await readdir(join(ROOT, folder), { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || !/\.m?[jt]s$/.test(entry.name)) continue
        const path = join(entry.parentPath, entry.name)
        expect(readFileSync(path, 'utf8'), path).not.toMatch(/(?:from |import |import\()'[^']*\/integrations\//)
      }
    }
  })

  test('are imported by the example through the entries of the package alone', async () => {
    const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const entries = Object.keys(exports).map((entry) => entry.replace('.', 'once-per-key'))
    for (const [path, text] of await sourceFiles()) {
      const own = importsOf(path, text).filter(({ specifier }) => specifier.startsWith('once-per-key'))
      for (const { specifier } of own) expect(entries, path).toContain(specifier)
    }
  })
})

describe('the check finds', () => {
  const project: Files = new Map([
    ['src/core/record/record.ts', ''],
    ['src/core/record/machine.ts', "import type { Answer } from './record.js'"],
    ['src/core/store/store.ts', "import type { Answer } from '../record/record.js'"],
    [
      'src/core/engine/engine.ts',
      "import { randomUUID } from 'node:crypto'\nimport { begin } from '../record/machine.js'",
    ],
    ['src/core/index.ts', "export { createEngine } from './engine/engine.js'"],
    ['src/node/held-response.ts', "import type { Execution } from '../core/index.js'"],
    ['src/express/middleware.ts', "import { createEngine } from '../core/index.js'\nimport '../node/held-response.js'"],
    ['src/webhooks/events/envelope.ts', "import { z } from 'zod/v4'"],
    ['src/webhooks/signatures/hmac-sha256.ts', "import { kindOf } from '../../core/index.js'"],
    [
      'src/webhooks/receiver/receiver.ts',
      "import type { WebhookEventError } from '../events/event-error.js'\nimport '../../core/index.js'",
    ],
    [
      'src/webhooks/receiver/documented-receiver.ts',
      "import './receiver.js'\nimport type { z } from '../events/envelope.js'",
    ],
    ['src/webhooks/events/event-error.ts', ''],
    [
      'src/webhooks/receiver/index.ts',
      "export { webhookReceiver } from './receiver.js'\nexport { hmacSha256 } from '../signatures/hmac-sha256.js'",
    ],
    ['src/http/index.ts', "export { createRequestEngine } from './engine/request-engine.js'"],
    ['src/http/engine/request-engine.ts', "import { createEngine } from '../../core/engine/engine.js'"],
    ['src/testing/laws.ts', "import type { Store } from '../core/index.js'"],
    ['src/index.ts', "export { idempotency } from './express/middleware.js'"],
    ['adapters/memory/store.ts', "import { LRUCache } from 'lru-cache'\nimport '../../src/core/index.js'"],
    ['adapters/redis/store.ts', "import type { Store } from '../../src/core/index.js'"],
    ['examples/payments/app.ts', "import express from 'express'\nimport { idempotency } from 'once-per-key'"],
    ['bin/main.ts', "import { Redis } from 'ioredis'\nimport { RedisStore } from 'once-per-key/redis'"],
    ['examples/payments/main.ts', "import { app } from './app.js'\nimport 'once-per-key/memory'"],
    ['examples/payments/playground/page/main.js', "import { element } from './element.js'"],
    ['examples/payments/playground/page/element.js', ''],
  ])

  test('nothing in a project that keeps to it', () => {
    expect(breachesIn(project)).toEqual([])
  })

  const forbidden = [
    ['src/core/engine/engine.ts', "import express from 'express'", 'express'],
    ['src/core/engine/engine.ts', "import { LRUCache } from 'lru-cache'", 'lru-cache'],
    ['src/core/engine/engine.ts', "import { z } from 'zod'", 'zod'],
    ['src/core/engine/engine.ts', "import type { Redis } from 'ioredis'", 'ioredis'],
    ['src/core/engine/engine.ts', "import { hash } from 'crypto'", 'crypto'],
    ['src/core/engine/engine.ts', "import { idempotency } from 'once-per-key'", 'once-per-key'],
    ['src/core/engine/engine.ts', "export * from '../../express/middleware.js'", '../../express/middleware.js'],
    ['src/core/engine/engine.ts', "import { laws } from '../../testing/laws.js'", '../../testing/laws.js'],
    ['src/core/engine/engine.ts', "import { nowhere } from './nowhere.js'", './nowhere.js'],
    ['src/core/engine/engine.ts', "import manifest from '../../../package.json'", '../../../package.json'],
    ['src/core/record/machine.ts', "import type { Store } from '../store/store.js'", '../store/store.js'],
    ['src/core/store/store.ts', "import { engine } from '../engine/engine.js'", '../engine/engine.js'],
    ['src/core/run/run.ts', "import type { engine } from '../engine/engine.js'", '../engine/engine.js'],
    ['src/http/request/facts.ts', "import '../engine/request-engine.js'", '../engine/request-engine.js'],
    ['src/core/engine/engine.ts', "import '../../node/held-response.js'", '../../node/held-response.js'],
    ['src/core/engine/engine.ts', "import '../../http/index.js'", '../../http/index.js'],
    ['src/http/engine/request-engine.ts', "import '../../node/held-response.js'", '../../node/held-response.js'],
    ['src/express/middleware.ts', "import '../core/engine/engine.js'", '../core/engine/engine.js'],
    ['src/express/middleware.ts', "import '../http/engine/request-engine.js'", '../http/engine/request-engine.js'],
    ['src/webhooks/receiver/receiver.ts', "import '../../core/engine/engine.js'", '../../core/engine/engine.js'],
    [
      'src/webhooks/receiver/receiver.ts',
      "import '../../http/engine/request-engine.js'",
      '../../http/engine/request-engine.js',
    ],
    ['src/testing/laws.ts', "import '../core/record/machine.js'", '../core/record/machine.js'],
    ['src/client/client.ts', "import '../core/index.js'", '../core/index.js'],
    ['src/client/client.ts', "import { randomUUID } from 'node:crypto'", 'node:crypto'],
    ['src/testing/laws.ts', "import '../http/engine/request-engine.js'", '../http/engine/request-engine.js'],
    ['adapters/memory/store.ts', "import '../../src/core/record/machine.js'", '../../src/core/record/machine.js'],
    [
      'adapters/redis/store.ts',
      "import type { Store } from '../../src/core/store/store.js'",
      '../../src/core/store/store.js',
    ],
    ['adapters/redis/store.ts', "import '../../src/http/index.js'", '../../src/http/index.js'],
    ['src/node/held-response.ts', "import '../express/middleware.js'", '../express/middleware.js'],
    ['src/node/held-response.ts', "import onHeaders from 'on-headers'", 'on-headers'],
    ['src/webhooks/events/envelope.ts', "import '../../node/held-response.js'", '../../node/held-response.js'],
    ['src/testing/laws.ts', "import '../node/held-response.js'", '../node/held-response.js'],
    ['src/express/middleware.ts', "import { z } from 'zod'", 'zod'],
    ['src/express/middleware.ts', "import type { Request } from 'express'", 'express'],
    ['src/express/middleware.ts', "import '../webhooks/envelope.js'", '../webhooks/envelope.js'],
    ['src/express/middleware.ts', "import '../../adapters/memory/store.js'", '../../adapters/memory/store.js'],
    ['src/express/middleware.ts', "import '../index.js'", '../index.js'],
    ['src/webhooks/events/envelope.ts', "import '../../express/middleware.js'", '../../express/middleware.js'],
    ['src/webhooks/events/envelope.ts', "import '../receiver/receiver.js'", '../receiver/receiver.js'],
    ['src/webhooks/receiver/receiver.ts', "import { z } from 'zod/v4'", 'zod/v4'],
    ['src/webhooks/receiver/receiver.ts', "import '../events/envelope.js'", '../events/envelope.js'],
    ['src/webhooks/receiver/receiver.ts', "import './documented-receiver.js'", './documented-receiver.js'],
    [
      'src/webhooks/receiver/index.ts',
      "export { webhookReceiver } from './documented-receiver.js'",
      './documented-receiver.js',
    ],
    ['src/webhooks/receiver/receiver.ts', "import '../../express/middleware.js'", '../../express/middleware.js'],
    ['src/webhooks/receiver/receiver.ts', "import '../signatures/hmac-sha256.js'", '../signatures/hmac-sha256.js'],
    ['src/webhooks/signatures/hmac-sha256.ts', "import '../receiver/receiver.js'", '../receiver/receiver.js'],
    ['src/testing/laws.ts', "import { test } from 'vitest'", 'vitest'],
    ['src/testing/laws.ts', "import '../../adapters/memory/store.js'", '../../adapters/memory/store.js'],
    ['src/index.ts', "export { MemoryStore } from '../adapters/memory/store.js'", '../adapters/memory/store.js'],
    ['adapters/memory/store.ts', "import '../../src/express/middleware.js'", '../../src/express/middleware.js'],
    ['adapters/memory/store.ts', "import '../redis/store.js'", '../redis/store.js'],
    ['adapters/redis/store.ts', "import { LRUCache } from 'lru-cache'", 'lru-cache'],
    ['adapters/redis/store.ts', "import { Redis } from 'ioredis'", 'ioredis'],
    ['examples/payments/app.ts', "import '../../src/index.js'", '../../src/index.js'],
    ['examples/payments/app.ts', "import '../../adapters/memory/store.js'", '../../adapters/memory/store.js'],
    ['examples/payments/app.ts', "import { hash } from 'crypto'", 'crypto'],
    ['bin/main.ts', "import '../src/core/index.js'", '../src/core/index.js'],
    ['bin/main.ts', "import '../adapters/redis/store.js'", '../adapters/redis/store.js'],
    ['bin/main.ts', "import express from 'express'", 'express'],
    ['examples/payments/playground/page/main.js', "import '../../app.js'", '../../app.js'],
    ['examples/payments/playground/page/main.js', "import express from 'express'", 'express'],
    ['examples/payments/playground/page/main.js', "import 'once-per-key'", 'once-per-key'],
  ] as const

  test.each(forbidden)('in %s: %s', (path, line, specifier) => {
    expect(breachesIn(withText(path, line))).toContain(`${path} may not import ${specifier}`)
  })

  const forms = [
    "import express from 'express'",
    "import { json } from 'express'",
    "import * as express from 'express'",
    "import type { Request } from 'express'",
    "import { type Request } from 'express'",
    "import 'express'",
    "import express = require('express')",
    "export * from 'express'",
    "export * as express from 'express'",
    "export { json } from 'express'",
    "export type { Request } from 'express'",
    "const express = await import('express')",
    "const load = () => { if (true) return import(\n/* late */ 'express') }",
    'const express = await import(`express`)',
    "const express = require('express')",
    "const where = require.resolve('express')",
    "const where = import.meta.resolve('express')",
    "let req: import('express').Request",
    "declare module 'express' { interface Request {} }",
    '/// <reference types="express" />',
  ]

  test.each(forms)('an import in the form: %s', (line) => {
    expect(breachesIn(withText('src/core/engine/engine.ts', line))).toEqual([
      'src/core/engine/engine.ts may not import express',
    ])
  })

  test('an import whose target it cannot read', () => {
    const found = breachesIn(withText('src/core/engine/engine.ts', 'await import(somewhere)'))
    expect(found).toEqual(['src/core/engine/engine.ts may not import (computed)'])
  })

  test('no import in a comment or a string', () => {
    const text = `// import 'express'\nconst text = "import 'express'"\n/** import('express') */`
    expect(breachesIn(withText('src/core/engine/engine.ts', text))).toEqual([])
  })

  test('a file outside the layers', () => {
    expect(breachesIn(withText('src/extras/thing.ts', ''))).toEqual(['src/extras/thing.ts belongs to no layer'])
    expect(breachesIn(withText('adapters/thing.ts', ''))).toEqual(['adapters/thing.ts belongs to no layer'])
  })

  test.each([
    "import { key } from './key.js'",
    "export { key } from './key.js'",
    "import { type Key } from './key.js'",
    "import type { Key } from './key.js'",
    "let key: import('./key.js').Key",
  ])('a cycle, types included: %s', (line) => {
    const round = withText(
      'src/core/engine/key.ts',
      "import './engine.js'",
      withText('src/core/engine/engine.ts', line),
    )
    expect(breachesIn(round)).toEqual([
      'src/core/engine/engine.ts -> src/core/engine/key.ts -> src/core/engine/engine.ts is a cycle',
    ])
  })

  test('a cycle in the examples at run time, and none where types alone go round', () => {
    const round = (line: string) =>
      breachesIn(withText('examples/payments/app.ts', line, withText('examples/payments/main.ts', "import './app.js'")))
    expect(round("import './main.js'")).toHaveLength(1)
    expect(round("import type { Main } from './main.js'")).toEqual([])
  })

  test('an index that does more than re-export', () => {
    const breach = ['src/core/index.ts does more than re-export']
    expect(breachesIn(withText('src/core/index.ts', "import './engine/engine.js'"))).toEqual(breach)
    expect(breachesIn(withText('src/core/index.ts', 'export const answer = 42'))).toEqual(breach)
    expect(breachesIn(withText('src/core/index.ts', 'export {}'))).toEqual(breach)
    expect(breachesIn(withText('src/core/index.ts', "export type { Answer } from './record/record.js'"))).toEqual([])
  })

  test.each(['utils', 'util', 'helpers', 'common', 'types'])('a file named %s', (name) => {
    const path = `src/core/record/${name}.ts`
    expect(breachesIn(withText(path, ''))).toEqual([`${path} is named after no idea`])
  })

  test('a file of too many lines, in src and in adapters', () => {
    for (const path of ['src/core/engine/engine.ts', 'adapters/memory/store.ts']) {
      expect(breachesIn(withText(path, '\n// line'.repeat(259)))).toEqual([])
      expect(breachesIn(withText(path, '\n// line'.repeat(350)))).toEqual([`${path} has 351 lines, more than 350`])
    }
  })

  test('too many files in src', () => {
    const rooms = Array.from({ length: 173 }, (_, i) => [`src/core/room-${i}/room.ts`, ''] as const)
    expect(breachesIn(new Map(rooms))).not.toContainEqual(expect.stringMatching(/^src has/))
    expect(breachesIn(new Map([...rooms, ['src/index.ts', '']]))).toContain('src has 174 files, more than 173')
  })

  test('a function of too many lines, one inside of another included; a text of many lines does not count', () => {
    const path = 'src/core/engine/engine.ts'
    const wordy = (lines: number) => `export function claim() {${'\n  act()'.repeat(lines - 2)}\n}`
    expect(breachesIn(withText(path, wordy(60)))).toEqual([])
    expect(breachesIn(withText(path, wordy(61)))).toEqual([`${path}: claim has 61 lines, more than 60`])
    expect(breachesIn(withText(path, `class Engine {\n${wordy(61).replace('export function', '')}\n}`))).toHaveLength(1)
    expect(breachesIn(withText(path, `const claim = () => {${'\n  act()'.repeat(60)}\n}`))).toHaveLength(1)
    const text = `const sql = () => \`${'\nSELECT 1'.repeat(100)}\``
    expect(breachesIn(withText(path, text))).toEqual([])
  })

  function withText(path: string, text: string, files = project): Files {
    return new Map([...files, [path, text]])
  }
})

/** What an example that is a project of its own depends on. */
function ownOf(path: string): object {
  const folder = path.split('/').slice(0, 2).join('/')
  return existsSync(join(ROOT, folder, 'package.json')) ? manifestOf(folder).dependencies : {}
}

function manifestOf(folder: string) {
  return JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'))
}

async function sourceFiles(): Promise<Files> {
  const files = new Map<string, string>()
  for (const folder of ['src', 'adapters', 'bin', 'examples']) {
    for (const entry of await readdir(join(ROOT, folder), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || !/\.[cm]?[jt]sx?$/.test(entry.name)) continue
      const path = relative(ROOT, join(entry.parentPath, entry.name)).split(sep).join('/')
      files.set(path, readFileSync(join(ROOT, path), 'utf8'))
    }
  }
  return files
}
