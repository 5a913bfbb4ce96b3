import { copyFile, mkdir, readdir, readFile, symlink } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { installInto, packPackage, ROOT, run } from '../../../test/support/packed-package.js'

// Installing and compiling take seconds, and more on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let packed: Awaited<ReturnType<typeof packPackage>>
const project = (type: 'module' | 'commonjs') => join(packed.folder, type)

beforeAll(async () => {
  packed = await packPackage()
  // The peers of webhooks, of telemetry and of Nest, where an installation with peers would find them.
  await mkdir(join(packed.folder, 'node_modules/@opentelemetry'), { recursive: true })
  for (const peer of ['zod', '@opentelemetry/api', '@nestjs', 'rxjs', 'reflect-metadata']) {
    await symlink(join(ROOT, 'node_modules', peer), join(packed.folder, 'node_modules', peer), 'junction')
  }
  await Promise.all([
    installInto(project('module'), packed.tarball, 'module'),
    installInto(project('commonjs'), packed.tarball, 'commonjs'),
  ])
})

afterAll(() => packed?.remove())

/** The names of SPEC §9 that stand for values; those of a store author included. */
const NAMES = {
  face: [
    'CertainFailure',
    'IdempotencyError',
    'agenticCommerce',
    'bodyField',
    'contextOf',
    'idempotency',
    'ietfDraft',
    'ietfDraft07',
    'singleTenant',
    'universalCommerce',
    'withoutBody',
  ],
  core: [
    'CasStoreError',
    'CertainFailure',
    'IdempotencyError',
    'NOT_KEPT',
    'SINGLE_TENANT',
    'StoreError',
    'buildStorageKey',
    'carryRun',
    'casStore',
    'completeByHand',
    'completeByHandAtOnce',
    'contextOf',
    'createEngine',
    'createOperationEngine',
    'deriveKey',
    'describeCause',
    'describeKind',
    'encodeLooseJson',
    'encodeRecord',
    'encodeStrictJson',
    'engineOptions',
    'findFirstSentFault',
    'findKeyFault',
    'findMistakes',
    'findNamespaceFault',
    'findReplyFault',
    'findScopeFault',
    'fingerprintOf',
    'isCertainFailure',
    'keepProcessAlive',
    'machine',
    'mountedTwiceError',
    'operationTakenError',
    'optionRules',
    'parseJson',
    'parseStorageKey',
    'readAllowEmpty',
    'recognizeAcrossCopies',
    'refuseFactory',
    'refuseMount',
    'resolveOptions',
    'runAfterwards',
    'safeListener',
    'step',
    'stepAtOnce',
    'toListedRecord',
    'toListedRecordIfUnknown',
    'transact',
    'transactAtOnce',
    'transactionLateError',
    'transactionStreamedError',
    'transactionsMissingError',
    'warnOnce',
    'warnUnheard',
    'whenever',
  ],
  http: [
    'ByteCollector',
    'aHeaderName',
    'agenticCommerce',
    'bodyField',
    'bodyHeaders',
    'computeRequestFingerprint',
    'createFirstSentReader',
    'createProblemFrom',
    'createRequestEngine',
    'createScopeReader',
    'createStreamedBody',
    'fitsBufferedBody',
    'ietfDraft',
    'ietfDraft07',
    'isReply',
    'listCoveredMethods',
    'parseComparableBody',
    'pickControls',
    'problemCatalogue',
    'readAtMost',
    'readBodyCopy',
    'readResponseBody',
    'reply',
    'requestOptions',
    'singleTenant',
    'toBodyStream',
    'toProblemAnswer',
    'toProblemBody',
    'universalCommerce',
    'waitFor',
    'withoutBody',
  ],
  fetch: [
    'CertainFailure',
    'IdempotencyError',
    'agenticCommerce',
    'bodyField',
    'contextOf',
    'idempotency',
    'ietfDraft',
    'ietfDraft07',
    'reply',
    'singleTenant',
    'universalCommerce',
    'withoutBody',
  ],
  hono: [
    'CertainFailure',
    'IdempotencyError',
    'agenticCommerce',
    'bodyField',
    'contextOf',
    'idempotency',
    'ietfDraft',
    'ietfDraft07',
    'reply',
    'singleTenant',
    'universalCommerce',
    'withoutBody',
  ],
  client: ['createClient', 'memoryKeys'],
  clientNode: ['useKeyFile'],
  mysql: ['MySqlStore', 'MySqlStoreError'],
  fastify: [
    'CertainFailure',
    'IdempotencyError',
    'agenticCommerce',
    'bodyField',
    'contextOf',
    'idempotency',
    'ietfDraft',
    'ietfDraft07',
    'singleTenant',
    'universalCommerce',
    'withoutBody',
  ],
  nest: [
    'CertainFailure',
    'IdempotencyError',
    'IdempotencyModule',
    'IdempotencyService',
    'Idempotent',
    'Operation',
    'agenticCommerce',
    'bodyField',
    'contextOf',
    'ietfDraft',
    'ietfDraft07',
    'singleTenant',
    'universalCommerce',
    'withoutBody',
  ],
  koa: [
    'CertainFailure',
    'IdempotencyError',
    'agenticCommerce',
    'bodyField',
    'contextOf',
    'idempotency',
    'ietfDraft',
    'ietfDraft07',
    'singleTenant',
    'universalCommerce',
    'withoutBody',
  ],
  memory: ['MemoryStore'],
  redis: ['RedisStore'],
  postgres: ['PostgresStore', 'PostgresStoreError'],
  opentelemetry: ['IdempotencyError', 'instrument'],
  run: ['CertainFailure', 'IdempotencyError', 'RefusedError', 'runner'],
  sqlite: ['SqliteStore', 'SqliteStoreError'],
  sealed: ['SealedStoreError', 'newSealingKey', 'sealed', 'sealingKeyId'],
  testing: ['bindOptions', 'bindingLaws', 'expectOnce', 'storeLaws'],
  receiver: [
    'CertainFailure',
    'WebhookEventError',
    'githubWebhooks',
    'hmacSha256',
    'shopifyWebhooks',
    'standardWebhooks',
    'stripeWebhooks',
    'webhookReceiver',
  ],
  webhooks: [
    'CertainFailure',
    'WebhookEventError',
    'githubWebhooks',
    'hmacSha256',
    'isKnownEvent',
    'looksLikeEmailAddress',
    'parseWebhookEvent',
    'shopifyWebhooks',
    'standardWebhooks',
    'stripeWebhooks',
    'webhookEventSchema',
    'webhookEventTypes',
    'webhookReceiver',
  ],
}

describe('what is in the tarball', () => {
  test('the build, the documents and the manifest, and nothing else', async () => {
    const files = await filesUnder(join(project('module'), 'node_modules/once-per-key'))
    const outside = files.filter(
      (file) => !file.startsWith('dist/') && !/^docs\/([\w/-]+\.md|dashboards\/[\w.]+)$/.test(file),
    )
    expect(outside.sort()).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'llms.txt',
      'package.json',
      'skills/once-per-key/SKILL.md',
    ])
    expect(files).toContain('docs/errors.md') // what messages point to
    const kinds = new Set(files.filter((file) => file.startsWith('dist/')).map((file) => file.replace(/^[^.]+/, '')))
    expect([...kinds].sort()).toEqual(['.cjs', '.d.cts', '.d.ts', '.js'])
  })

  test('every file that the manifest points to', async () => {
    const home = join(project('module'), 'node_modules/once-per-key')
    const { bin, exports, main, module, types, typesVersions } = JSON.parse(
      await readFile(join(home, 'package.json'), 'utf8'),
    )
    const targets = pathsIn({ bin, exports, main, module, types, typesVersions })
    const files = await filesUnder(home)
    expect(targets.length).toBeGreaterThan(16)
    expect(targets.filter((target) => !files.includes(target.replace(/^\.\//, '')))).toEqual([])
  })

  test('types for the old resolution for every entry', async () => {
    const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    const entries = Object.keys(manifest.exports).filter((entry) => entry !== '.' && entry !== './package.json')
    expect(Object.keys(manifest.typesVersions['*']).map((name) => `./${name}`)).toEqual(entries)
  })

  test('no path of the machine that built it, and no map', async () => {
    const home = join(project('module'), 'node_modules/once-per-key')
    for (const file of await filesUnder(home)) {
      const text = await readFile(join(home, file), 'utf8')
      expect(text.includes(ROOT), file).toBe(false)
      expect(text, file).not.toContain('sourceMappingURL')
    }
  })

  test('nothing twice: the types of an ES module are those of its twin, and docstrings stand in the types alone', async () => {
    const home = join(project('module'), 'node_modules/once-per-key/dist')
    for (const file of await filesUnder(home)) {
      const text = await readFile(join(home, file), 'utf8')
      if (file.endsWith('.d.ts')) expect(text).toBe(`export * from './${file.replace('.d.ts', '.cjs')}'\n`)
      if (/\.c?js$/.test(file)) expect(text, file).not.toMatch(/^\s*\/\*\*/m)
    }
  })

  test('docstrings, which an editor shows', async () => {
    const home = join(project('module'), 'node_modules/once-per-key/dist')
    const types = (await filesUnder(home)).filter((file) => file.endsWith('.d.cts'))
    const text = (await Promise.all(types.map((file) => readFile(join(home, file), 'utf8')))).join('\n')
    for (const words of ['How long an owner may be silent', '@example', '@throws IdempotencyError', '@default']) {
      expect(text).toContain(words)
    }
  })
})

describe('what an installation brings along', () => {
  test('lru-cache alone: no framework, no validator, no client library', async () => {
    const folders = await readdir(join(project('module'), 'node_modules'))
    expect(folders.filter((name) => !name.startsWith('.')).sort()).toEqual(['lru-cache', 'once-per-key'])
    const lock = JSON.parse(await readFile(join(project('module'), 'package-lock.json'), 'utf8'))
    expect(lock.packages['node_modules/once-per-key'].dependencies).toEqual({ 'lru-cache': expect.any(String) })
    const { peerDependencies, peerDependenciesMeta } = lock.packages['node_modules/once-per-key']
    for (const peer of Object.keys(peerDependencies))
      expect(peerDependenciesMeta[peer], peer).toEqual({ optional: true })
  })

  // In any version: npm refuses to install beside one that does not fit, also where the application uses another entry. What does
  // not fit is refused by the entry that needs it.
  test('its peers are what it imports at run time, in any version', async () => {
    const home = join(project('module'), 'node_modules/once-per-key')
    const { peerDependencies } = JSON.parse(await readFile(join(home, 'package.json'), 'utf8'))
    const imported = await importedBy(join(home, 'dist'), /\.c?js$/)
    const packages = imported.map((name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name)
    const others = [...new Set(packages)].filter((name) => name !== 'lru-cache' && name !== 'once-per-key')
    expect(peerDependencies).toEqual(Object.fromEntries(others.map((name) => [name, '*'])))
  })

  test.each([
    {
      what: 'code',
      files: /\.c?js$/,
      packages: ['@nestjs/common', '@nestjs/core', '@opentelemetry/api', 'lru-cache', 'rxjs', 'zod/v4'],
    },
    // Those of a framework stand in the types of its binding alone.
    {
      what: 'types',
      files: /\.d\.c?ts$/,
      packages: ['@nestjs/common', '@opentelemetry/api', 'fastify', 'hono', 'koa', 'zod/v4'],
    },
  ])(
    '$what that asks for $packages, besides itself and Node, whose modules are named with node:',
    async ({ files, packages }) => {
      const home = join(project('module'), 'node_modules/once-per-key/dist')
      // The command asks for the driver of the store that it is given.
      expect(await importedBy(home, files, (file) => !file.startsWith('bin/'))).toEqual(packages)
    },
  )
})

describe('what a consumer can do with it', () => {
  const consumers = [
    { title: 'an ES module', type: 'module', file: 'esm.mjs' },
    { title: 'a CommonJS module', type: 'commonjs', file: 'commonjs.cjs' },
  ] as const

  test.each(consumers)('$title serves a request and its retry, from one core', async ({ type, file }) => {
    const seen = await runConsumer(project(type), file)
    expect(seen.first).toEqual({ status: 201, replayed: null, body: '{"run":1,"attempt":1}' })
    expect(seen.retry).toEqual({ status: 201, replayed: 'true', body: '{"run":1,"attempt":1}' })
    expect(seen.name).toBe('once-per-key')
    expect(seen.errorIsOneClass).toBe(true)
    expect(seen.memoryError).toEqual({ isInstance: true, code: 'options_invalid' })
    expect(seen.receiverError).toEqual({ isInstance: true, code: 'options_invalid' })
    expect(seen.event).toEqual({ statuses: [200, 200], runs: 1 })
    expect(seen.engineError).toEqual({ isInstance: true, code: 'options_invalid' })
    expect(seen.laws).toEqual({ some: true, broken: [] })
  })

  test.each(consumers)('$title finds the public names, and no others', async ({ type, file }) => {
    expect((await runConsumer(project(type), file)).names).toEqual(NAMES)
  })

  test('an ES module with a CommonJS store works, and knows its errors by their class and their code', async () => {
    const seen = await runConsumer(project('module'), 'mixed.mjs')
    expect(seen.retry).toEqual({ status: 201, replayed: 'true', body: '{"run":1,"attempt":1}' })
    expect(seen.memoryError).toEqual({ isInstance: true, code: 'options_invalid' })
  })

  test('the consumers of this test load every entry', async () => {
    const { exports } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    for (const { file } of consumers) {
      const text = await readFile(join(ROOT, 'integrations/test/package/consumers', file), 'utf8')
      const loaded = [...text.matchAll(/'once-per-key(\/[^']+)?'/g)].map((match) => `.${match[1] ?? ''}`)
      expect(loaded.sort(), file).toEqual(Object.keys(exports).sort())
    }
  })

  test.each(['module', 'commonjs'] as const)('a TypeScript project of type %s compiles and runs', async (type) => {
    const home = project(type)
    await copyFile(join(ROOT, 'integrations/test/package/consumers/typescript.ts'), join(home, 'typescript.ts'))
    const types = join(ROOT, 'node_modules/@types')
    const flags = ['--module', 'NodeNext', '--target', 'ES2022', '--strict', '--typeRoots', types, '--types', 'node']
    await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), ...flags, 'typescript.ts'], home)
    const seen = JSON.parse(await run(process.execPath, ['typescript.js'], home))
    expect(seen).toEqual({
      replies: ['200 1 null', '200 1 true'],
      events: ['claimed', 'completed', 'replayed'],
      laws: true,
      errorIsOneClass: true,
      machine: 'function',
    })
  })
})

async function runConsumer(home: string, file: string) {
  for (const name of ['exercise.cjs', file]) {
    await copyFile(join(ROOT, 'integrations/test/package/consumers', name), join(home, name))
  }
  return JSON.parse(await run(process.execPath, [file], home))
}

/** Also in a line of types. Its words are what an import has before the name of the module, and no other text has. */
const IMPORTS = /(?:^import\s*|^(?:import|export)[\w\s*{},$]*?\bfrom\s*|require\(|import\()['"]([^'".][^'"]*)['"]/gm

/** What files of a folder import, besides one another and Node's modules by `node:`. */
async function importedBy(folder: string, files: RegExp, isMeant = (_file: string) => true): Promise<string[]> {
  const imported = new Set<string>()
  for (const file of await filesUnder(folder)) {
    if (!files.test(file) || !isMeant(file)) continue
    const text = await readFile(join(folder, file), 'utf8')
    for (const match of text.matchAll(IMPORTS)) {
      imported.add(match[1] ?? '')
    }
  }
  return [...imported].filter((name) => !name.startsWith('node:')).sort()
}

async function filesUnder(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(folder, join(entry.parentPath, entry.name)))
}

function pathsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(pathsIn) : []
}
