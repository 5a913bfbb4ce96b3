// Writes docs/options.md from the docstrings of the options, so that the two cannot differ: `npm run docs:options`.
// With `--check` it writes nothing, and fails where the page is not what it would write.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { argumentsOf } from '../stages.mjs'

argumentsOf('--check')

const ROOT = new URL('../../', import.meta.url)
const PAGE = new URL('docs/options.md', ROOT)

/** A heading, what it says first, and the types whose members it lists; the first of a name counts. */
const SECTIONS = [
  {
    title: 'idempotency',
    intro: 'The options of each framework, as in `idempotency({ store, scope, … })`.',
    types: [
      ['src/core/options/engine-options.ts', 'EngineOptions', ['store']],
      ['src/http/options/options.ts', 'IdempotencyOptions'],
      ['src/core/options/engine-options.ts', 'EngineOptions'],
    ],
    without: ['isAnswer', 'answerFault'],
  },
  {
    title: 'bodyField',
    intro: 'For `legacyKey`: `bodyField(name, { … })`.',
    types: [['src/http/options/options.ts', 'BodyFieldOptions']],
  },
  {
    title: 'Fetch and Hono',
    intro:
      '`idempotency` of these entries has one more option. In Fetch, `scope` may be absent if each call of `once.handle` has one.',
    types: [['src/fetch/options.ts', 'FetchIdempotencyOptions', ['maxBodyBytes']]],
  },
  {
    title: 'once.handle',
    intro:
      'The last argument of `once.handle(request, handler, { … })`, [for Fetch](frameworks.md#fetch). Unknown names are ignored.',
    types: [['src/fetch/idempotency.ts', 'HandleOptions']],
  },
  {
    title: 'MemoryStore',
    intro: '[About this store](stores/memory.md).',
    types: [['adapters/memory/options.ts', 'MemoryStoreOptions']],
  },
  {
    title: 'RedisStore',
    intro: '[About this store](stores/redis.md).',
    types: [['adapters/redis/redis-store.ts', 'RedisStoreOptions']],
  },
  {
    title: 'PostgresStore',
    intro: '[About this store](stores/postgres.md).',
    types: [['adapters/postgres/options.ts', 'PostgresStoreOptions']],
  },
  {
    title: 'MySqlStore',
    intro: '[About this store](stores/mysql.md).',
    types: [['adapters/mysql/options.ts', 'MySqlStoreOptions']],
  },
  {
    title: 'SqliteStore',
    intro: '[About this store](stores/sqlite.md).',
    types: [['adapters/sqlite/options.ts', 'SqliteStoreOptions']],
  },
  {
    title: 'casStore',
    intro: '[About a store over your own database](stores/your-own.md).',
    types: [['src/core/store/cas-store.ts', 'CasStoreOptions']],
  },
  {
    title: 'sealed',
    intro: '`sealed(store, { … })`: [about sealing](stores/sealed.md).',
    types: [['adapters/sealed/options.ts', 'SealedOptions']],
  },
  {
    title: 'webhookReceiver',
    intro:
      '[About webhooks](webhooks.md). It also takes `store`, `leaseMs`, `maxRunMs`, ' +
      '`storeTimeoutMs`, `effects`, `maxStepBytes`, `unknownOutcome`, `unknownRetentionMs`, `clockSkewMs`, `unconfirmedSuccess` and `retryAfterMs`, as above.',
    types: [
      ['src/webhooks/receiver/receiver-options.ts', 'CommonReceiverOptions'],
      ['src/webhooks/receiver/receiver-options.ts', 'ParsedReceiverOptions'],
    ],
  },
  {
    title: 'runner',
    intro:
      '[About jobs and messages](jobs.md). It also takes `store`, and the options above from `leaseMs` to `storeFailure`.',
    types: [
      ['src/run/runner-options.ts', 'RunnerOptions'],
      ['src/run/runner.ts', 'CodecOptions'],
    ],
  },
  {
    title: 'Operation',
    intro: 'The first argument of a runner: `once({ … }, work)`.',
    types: [
      ['src/run/operation.ts', 'OperationName'],
      ['src/run/operation.ts', 'Operation'],
    ],
  },
  {
    title: 'createClient',
    intro:
      '[About clients](clients.md). It throws a `TypeError` without `keys`, for an unknown name and for a value of another type, and a `RangeError` for a limit that is not 1 to 2,147,483,647.',
    types: [['src/client/options.ts', 'ClientOptions']],
  },
  {
    title: 'instrument',
    intro: '[About OpenTelemetry](observability.md#metrics).',
    types: [['src/opentelemetry/instrument.ts', 'InstrumentOptions']],
  },
  {
    title: 'standardWebhooks',
    intro: 'For `verify` of webhooks.',
    types: [['src/webhooks/signatures/standard-webhooks.ts', 'StandardWebhooksOptions']],
  },
  {
    title: 'hmacSha256',
    intro: 'For `verify` of webhooks.',
    types: [['src/webhooks/signatures/hmac-sha256.ts', 'HmacSha256Options']],
  },
  {
    title: 'storeLaws',
    intro: 'The last argument, [for stores of your own](stores/your-own.md).',
    types: [['src/testing/store/store-laws.ts', 'StoreLawsOptions']],
    without: ['effects'],
  },
  {
    title: 'bindingLaws',
    intro: 'The last argument, [for bindings of your own](bindings.md#the-laws).',
    types: [['src/testing/bindings/binding-bench.ts', 'BindingLawsOptions']],
  },
]

const HEAD = `# Options

<!-- Written by \`npm run docs:options\` from the docstrings. Do not edit. -->

Each option, with its default. All durations are integers, in milliseconds. Mistakes are reported at construction, all of them in one
[\`options_invalid\`](errors.md#options_invalid); an unknown name is a mistake. What is not required may be left out.
`

const page = `${[HEAD, ...SECTIONS.filter(isThere).map(sectionOf)].join('\n')}`
if (!process.argv.includes('--check')) writeFileSync(PAGE, page)
else if (!existsSync(PAGE) || readFileSync(PAGE, 'utf8') !== page) {
  console.error('docs/options.md is not what the docstrings say. Run npm run docs:options.')
  process.exitCode = 1
}

function isThere({ types }) {
  return types.every(([path]) => existsSync(new URL(path, ROOT)))
}

function sectionOf({ title, intro, types, without = [] }) {
  const members = new Map()
  for (const [path, name, only] of types) {
    for (const member of membersOf(path, name)) {
      const wanted = only === undefined || only.includes(member.name)
      if (wanted && !without.includes(member.name) && !members.has(member.name)) members.set(member.name, member)
    }
  }
  return [`## ${title}\n\n${intro}\n`, ...[...members.values()].map(entryOf)].join('\n')
}

function entryOf({ name, isRequired, others = [], text, byDefault }) {
  const or = others.map((other) => `, or \`${other}\``).join('')
  const lines = [`### \`${name}\`${isRequired ? ` (required${or})` : ''}`, '']
  if (text !== '') lines.push(text, '')
  if (byDefault !== null && byDefault !== 'none') lines.push(`**Default:** ${byDefault}`, '')
  return lines.join('\n')
}

/** The properties of a type, with those of the types of the same file that it is made of. */
function membersOf(path, name) {
  const file = ts.createSourceFile(
    path,
    readFileSync(fileURLToPath(new URL(path, ROOT)), 'utf8'),
    ts.ScriptTarget.Latest,
    true,
  )
  const declared = new Map()
  for (const each of file.statements) {
    if (ts.isInterfaceDeclaration(each) || ts.isTypeAliasDeclaration(each)) declared.set(each.name.text, each)
  }
  const found = []
  /** Those that one form of the options has in place of another form's. */
  const choices = new Set()
  collect(declared.get(name))
  for (const member of found) {
    if (choices.has(member.name)) member.others = [...choices].filter((other) => other !== member.name)
  }
  return found

  function collect(node) {
    if (node === undefined) throw new Error(`${path} has no ${name}.`)
    if (ts.isInterfaceDeclaration(node)) {
      node.members.forEach(add)
      for (const clause of node.heritageClauses ?? [])
        for (const type of clause.types) follow(type.expression.getText())
    } else if (ts.isTypeAliasDeclaration(node)) collect(node.type)
    else if (ts.isTypeLiteralNode(node)) node.members.forEach(add)
    else if (ts.isTypeReferenceNode(node)) follow(node.typeName.getText())
    else if (ts.isParenthesizedTypeNode(node)) collect(node.type)
    else if (ts.isIntersectionTypeNode(node) || ts.isUnionTypeNode(node)) node.types.forEach(collect)
  }

  function follow(other) {
    if (declared.has(other) && path.startsWith('adapters/')) collect(declared.get(other))
  }

  function add(member) {
    const type = member.type?.getText() ?? ''
    if (type === 'never') choices.add(member.name.getText())
    if (!ts.isPropertySignature(member) || type === 'never' || type === 'undefined') return
    const docs = ts.getJSDocCommentsAndTags(member).find(ts.isJSDoc)
    const byDefault = defaultIn(docs)
    found.push({
      name: member.name.getText(),
      isRequired: member.questionToken === undefined && byDefault === null,
      text: paragraphs(docs?.comment),
      byDefault,
    })
  }
}

/** Lines of a docstring flow; a blank line stays. */
function paragraphs(comment) {
  const text = ts.getTextOfJSDocComment(comment) ?? ''
  return text
    .split(/\n\s*\n/)
    .map((each) => each.replace(/\s*\n\s*/g, ' ').trim())
    .join('\n\n')
}

/** A value stands as code; the reason for it follows. */
function defaultIn(docs) {
  const tag = docs?.tags?.find((each) => each.tagName.text === 'default')
  if (tag === undefined) return null
  const text = paragraphs(tag.comment)
  const [, value = '', rest = ''] =
    /^('[^']*'|\[[^\]]*\]|[\d_]+(?:\.\d+)?(?=[:\s]|$)|true|false|\(\) => \w+|performance\.now\(\))(.*)$/s.exec(text) ??
    []
  return value === '' ? text : `\`${value}\`${rest}`
}
