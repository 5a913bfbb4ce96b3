import { readFileSync } from 'node:fs'
import * as core from 'once-per-key/core'
import * as http from 'once-per-key/http'
import ts from 'typescript'
import type { bound } from '../../examples/recipes/binding.js'

/** A mistake in a binding, made in the text of the recipe. */
export interface BrokenBinding {
  readonly breaks: string
  /** Stands in the recipe once. */
  readonly find: string
  readonly replace: string
  /** How the names of the laws begin that must find it. */
  readonly foundBy: readonly string[]
  /** No other law may fail. */
  readonly alone?: true
}

const REPLAYED = 'responseOf(engine.answerFor(other, request), extra)'
const RESPONSE = 'return new Response(bytes, { status, statusText: statusMessage, headers: pairs })'

export const BROKEN_BINDINGS: readonly BrokenBinding[] = [
  {
    breaks: 'what a handler throws releases nothing',
    find: 'await run.fail()',
    replace: '',
    foundBy: ['failure: a throw', 'failure: a rejection', 'failure: a CertainFailure', 'end: a throw is sent after'],
    alone: true,
  },
  {
    breaks: 'a failure is not settled, but sent',
    find: 'const answer = await answerOf(await handler(request, run.context))',
    replace: `const answer = await answerOf(await handler(request, run.context))
      if (answer.status >= 400) return responseOf(answer)`,
    foundBy: ['failure: an answer of 422', 'failure: an answer of 408', 'failure: an answer of 503'],
  },
  {
    breaks: 'a CertainFailure is like any other',
    find: 'run.reportError(error)',
    replace: '',
    foundBy: ['failure: a CertainFailure is certain'],
    alone: true,
  },
  {
    breaks: 'what was thrown is answered with 502',
    find: 'throw error',
    replace: 'return new Response(null, { status: 502 })',
    foundBy: ['failure: a throw', 'failure: an application whose handler throws'],
  },
  {
    breaks: 'a replay is always 200',
    find: REPLAYED,
    replace:
      "responseOf(other.action === 'replay' ? { ...other.answer, status: 200 } : engine.answerFor(other, request), extra)",
    foundBy: ['replay: json', 'replay: a status without a body', 'replay: 204', 'replay: a redirect'],
  },
  {
    breaks: 'a body is decoded as text',
    find: 'Buffer.from(await response.arrayBuffer())',
    replace: 'Buffer.from(await response.text())',
    foundBy: ['replay: bytes'],
    alone: true,
  },
  {
    breaks: 'of several lines of a header the last one is kept',
    find: 'headers: [...headers], body',
    replace: 'headers: Object.entries(Object.fromEntries([...headers])), body',
    foundBy: ['replay: cookies'],
  },
  {
    breaks: 'cookies are folded into one line',
    find: RESPONSE,
    replace: `const folded = new Map<string, string>()
  for (const [name, value] of pairs) folded.set(name, folded.has(name) ? folded.get(name) + ', ' + value : value)
  return new Response(bytes, { status, statusText: statusMessage, headers: [...folded] })`,
    foundBy: ['replay: cookies'],
    alone: true,
  },
  {
    breaks: 'header bytes that are not ASCII are lost',
    find: 'headers: [...headers], body',
    replace: "headers: [...headers].map(([name, value]) => [name, value.replace(/[^ -~]/g, '')]), body",
    foundBy: ['replay: header bytes'],
    alone: true,
  },
  {
    breaks: 'a key is never required',
    find: 'createRequestEngine(options)',
    replace: 'createRequestEngine({ ...options, required: false })',
    foundBy: ['problem: a request without a key'],
    alone: true,
  },
  {
    breaks: 'of two at once both run',
    find: "if (decision.action !== 'execute') return",
    replace: `if (decision.action === 'reject' && decision.problem.code === 'in_flight') return handler(request)
    if (decision.action !== 'execute') return`,
    foundBy: ['race: of 20 identical requests'],
  },
  {
    breaks: 'a duplicate never waits',
    find: 'createRequestEngine(options)',
    replace: 'createRequestEngine({ ...options, inFlightWaitMs: 0 })',
    foundBy: ['race: a duplicate that waits'],
    alone: true,
  },
  {
    breaks: 'refusals come without Retry-After',
    find: RESPONSE,
    replace: `return new Response(bytes, { status, headers: pairs.filter(([name]) => !/^retry-after$/i.test(name)) })`,
    foundBy: ['race: of 20 identical requests', 'problem: a store that is away'],
  },
  {
    breaks: 'a problem is of the type application/json',
    find: RESPONSE,
    replace: `const typed = pairs.map(([name, value]): [string, string] => [name, value.replace('problem+json', 'json')])
  return new Response(bytes, { status, headers: typed })`,
    foundBy: ['problem: an empty key', 'mismatch: the key with another body'],
  },
  {
    breaks: 'the query does not count',
    find: 'request.url.slice(new URL(request.url).origin.length)',
    replace: 'new URL(request.url).pathname',
    foundBy: ['mismatch: the key with another query', 'mismatch: the key with a query in another order'],
    alone: true,
  },
  {
    breaks: 'the method does not count',
    find: 'method: request.method',
    replace: "method: 'POST'",
    foundBy: ['mismatch: the key with another method'],
  },
  {
    breaks: 'a body counts by its bytes',
    find: '...parseComparableBody(new Uint8Array(await request.clone().arrayBuffer()), rawHeaders)',
    replace: 'body: new Uint8Array(await request.clone().arrayBuffer()), bodyWasRead: true',
    foundBy: ['mismatch: JSON with its members in another order', 'legacy field: '],
  },
  {
    breaks: 'a client that leaves ends the run',
    find: 'const answer = await answerOf(await handler(request, run.context))',
    replace: `request.signal.addEventListener('abort', () => void run.fail())
      const answer = await answerOf(await handler(request, run.context))`,
    foundBy: ['disconnect: '],
    alone: true,
  },
  {
    breaks: 'the headers of this one request are forgotten',
    find: "if (decision.action !== 'execute') return instead(decision, decision.extraHeaders)",
    replace: "if (decision.action !== 'execute') return instead(decision)",
    foundBy: ['legacy field: '],
    alone: true,
  },
  {
    breaks: 'an answer is kept, however large',
    find: 'isKept ? answer : { ...answer, body: null }',
    replace: 'answer',
    foundBy: ['too large: an answer'],
    alone: true,
  },
  {
    breaks: 'a handler has no context',
    find: 'handler(request, run.context)',
    replace: 'handler(request)',
    foundBy: ['run: a handler receives', 'failure: after mayHaveEffect()'],
  },
  {
    breaks: 'a success is sent before it is stored',
    find: 'const settled = await run.settle(isKept ? answer : { ...answer, body: null })',
    replace: `void run.settle(isKept ? answer : { ...answer, body: null })
      if (answer.status < 400) return responseOf(answer, extraHeaders)
      const settled = { action: 'send' } as { action: 'send' }`,
    foundBy: ['end: a success is sent after', 'end: a refusal is sent after', 'end: where another attempt'],
  },
  {
    breaks: 'what was thrown is sent before the key is released',
    find: 'await run.fail()',
    replace: 'void run.fail()',
    foundBy: ['end: a throw is sent after'],
    alone: true,
  },
  {
    breaks: 'the own answer is sent, whatever the record holds',
    find: "return settled.action === 'send' ? responseOf(answer, extraHeaders) : instead(settled, extraHeaders)",
    replace: 'return responseOf(answer, extraHeaders)',
    foundBy: ['end: where another attempt has completed', 'end: where another attempt owns'],
    alone: true,
  },
  {
    breaks: 'the target is normalised',
    find: 'request.url.slice(new URL(request.url).origin.length)',
    replace: `(() => {
        const url = new URL(request.url)
        url.searchParams.sort()
        return decodeURIComponent(url.pathname.toLowerCase()).replace(/(.)\\/$/, '$1') + url.search
      })()`,
    foundBy: ['a path in another case', 'a slash', 'a path that is decoded', 'a query in another order'].map(
      (what) => `mismatch: the key with ${what}`,
    ),
    alone: true,
  },
  {
    breaks: 'bytes count as text',
    find: 'new Uint8Array(await request.clone().arrayBuffer())',
    replace: 'new TextEncoder().encode(await request.clone().text())',
    foundBy: ['mismatch: the key with other bytes that are no text'],
    alone: true,
  },
  {
    breaks: 'keys have no case',
    find: 'const rawHeaders = [...request.headers].flat()',
    replace:
      "const rawHeaders = [...request.headers].flatMap(([name, value]) => [name, name === 'idempotency-key' ? value.toLowerCase() : value])",
    foundBy: ['run: a key is read as its client has sent it'],
    alone: true,
  },
  {
    breaks: 'after misuse the handler runs',
    find: 'const decision = await engine.decide({',
    replace: `const orBypass = async (facts: never) => {
      try {
        return await engine.decide(facts)
      } catch {
        return { action: 'bypass' } as const
      }
    }
    const decision = await orBypass({`,
    foundBy: ['misuse: a scope that is none'],
    alone: true,
  },
]

const RECIPE = readFileSync(new URL('../../examples/recipes/binding.ts', import.meta.url), 'utf8')
const MODULES: Readonly<Record<string, unknown>> = { 'once-per-key/core': core, 'once-per-key/http': http }

/** The recipe's binding with the mistake in it. */
export function plantedBinding({ breaks, find, replace }: Pick<BrokenBinding, 'breaks' | 'find' | 'replace'>) {
  if (RECIPE.split(find).length !== 2) throw new Error(`"${breaks}": its text does not stand in the recipe once.`)
  const { outputText } = ts.transpileModule(
    RECIPE.replace(find, () => replace),
    { compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 } },
  )
  const exports: { bound?: typeof bound } = {}
  new Function('exports', 'require', outputText)(exports, (name: string) => MODULES[name])
  return exports.bound as typeof bound
}
