import type { Check } from '../checks.js'
import type { Mutant } from '../mutants/mutant.js'

const CAPTURE = 'src/express/capture.ts'
const MIDDLEWARE = 'src/express/middleware.ts'
const SEND = 'src/express/send.ts'
const FINGERPRINT = 'src/core/fingerprint.ts'
const IDENTITY = 'src/core/identity.ts'
const KEY = 'src/core/key.ts'
const ANSWER = 'src/core/answer.ts'
const EXECUTION = 'src/core/execution.ts'

const OF_ALL = 'return fingerprintOf(method, target, facts.body, legacyKey?.field)'
const STORAGE_KEY =
  "export function storageKey({ namespace, scope, key }: Pick<Identity, 'namespace' | 'scope' | 'key'>): string {"

function planted(check: Check, name: string, file: string, find: string, replace: string): Mutant {
  return { name, file, find, replace, layer: 'fuzz', check }
}

export const mutants: readonly Mutant[] = [
  // What makes two requests the same
  planted('S9', 'the fingerprint leaves the query out', IDENTITY, OF_ALL, OF_ALL.replace('target', 'pathOf(target)')),
  planted('S9', 'the fingerprint leaves the method out', IDENTITY, OF_ALL, OF_ALL.replace('method', "'POST'")),
  planted('S9', 'the fingerprint leaves the body out', IDENTITY, OF_ALL, OF_ALL.replace('facts.body', 'null')),
  planted('S3', 'the order of members counts', FINGERPRINT, 'sort(names)', 'names.reverse()'),
  planted('S3', "the key's field counts in the fingerprint", FINGERPRINT, 'if (name === ignoredMember) continue', ''),
  planted('L2', 'no body is too deep', FINGERPRINT, 'if (depth === MAX_BODY_DEPTH) return false', ''),

  // What is a key, and whose
  planted(
    'S5',
    'of several keys the first is taken',
    KEY,
    'line === undefined || second !== undefined',
    'line === undefined',
  ),
  planted('S5', 'a key stays in its quotes', KEY, 'RFC_8941_STRING.test(text)', "text === ''"),
  planted('S5', 'a key is read as Latin-1', KEY, 'isUtf8(bytes)', 'bytes.length === 0'),
  planted(
    'S5',
    'an invalid key is no key',
    IDENTITY,
    "if ('invalid' in reading) {",
    "if ('invalid' in reading) return BYPASS\n    else if (false) {",
  ),
  planted(
    'S5',
    "the header's name is taken literally",
    IDENTITY,
    'each.toLowerCase() !== name',
    'each.toLowerCase() !== each && each !== name',
  ),
  planted('S5', 'a required key is not asked for', IDENTITY, 'legacy === null && !required', 'legacy === null'),
  planted(
    'S5',
    'a field that is no string is no key',
    'src/core/legacy-key.ts',
    "if (typeof value !== 'string') {",
    "if (typeof value !== 'string') return null\n  else if (false) {",
  ),
  planted(
    'S5',
    'PATCH is not covered',
    'src/core/options.ts',
    "methods: ['POST', 'PUT', 'PATCH', 'DELETE'],",
    "methods: ['POST', 'PUT', 'DELETE'],",
  ),
  planted(
    'S9',
    'a scope is coerced',
    'src/core/scope.ts',
    'const fault = scopeFault(given)',
    'given = String(given)\n  const fault = scopeFault(given)',
  ),
  planted(
    'S9',
    'scope and key are joined without care',
    KEY,
    STORAGE_KEY,
    `${STORAGE_KEY}\n  const encodeURIComponent = String`,
  ),
  planted('S9', 'the scope is left out of the storage key', KEY, STORAGE_KEY, `${STORAGE_KEY}\n  scope = 'all'`),

  // What is stored, and given back
  planted(
    'S8',
    'text is held as UTF-8, whatever its encoding',
    'src/express/held-body.ts',
    "typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8'",
    "'utf8'",
  ),
  planted('S2', 'bodies are stored as text', 'adapters/memory/kept-answer.ts', ".toString('latin1')", '.toString()'),
  planted(
    'S2',
    'of several header lines the last is given back',
    ANSWER,
    'lines[1] = [lines[1], value].flat()',
    'lines[1] = value',
  ),
  planted(
    'S2',
    'the reason phrase is not given back',
    SEND,
    'withHead(res, answer, extraHeaders,',
    "withHead(res, { ...answer, statusMessage: '' }, extraHeaders,",
  ),
  planted(
    'S2',
    "the first client's cookies are given to all",
    ANSWER,
    "new Set(['date', 'set-cookie'])",
    "new Set(['date'])",
  ),
  planted(
    'S2',
    'an event stream is an answer like others',
    ANSWER,
    "return typeof contentType === 'string' &&",
    "return typeof contentType === 'symbol' &&",
  ),
  planted('S5', 'a redirect is no success', ANSWER, 'status <= 399', 'status <= 299'),
  planted(
    'S8',
    'a failure is stored',
    EXECUTION,
    'functions.isSuccess(answer, request) ? complete(answer) : release()',
    'complete(answer)',
  ),
  planted(
    'S3',
    'an answer is sent before it is stored',
    CAPTURE,
    'const settled = await execution.settle({ ...headOf(), body: isKept ? body : null })',
    "void execution.settle({ ...headOf(), body: isKept ? body : null })\n    const settled = { action: 'send' } as Settled",
  ),
  planted(
    'S5',
    'an answer too large to keep frees its key',
    CAPTURE,
    'const settled = await execution.settle({ ...headOf(), body: null })',
    "await execution.fail()\n    const settled = { action: 'send' } as Settled",
  ),

  // When it runs, and when it ends
  planted(
    'S11',
    'a disconnect releases',
    CAPTURE,
    '    clientLeft = true\n',
    '    clientLeft = true\n    void execution.fail()\n',
  ),
  planted(
    'S5',
    'a replay runs the handler',
    MIDDLEWARE,
    'return send(decision, req, res, decision.extraHeaders)',
    "return decision.action === 'replay' ? next() : send(decision, req, res, decision.extraHeaders)",
  ),
  planted(
    'S1',
    'a live lease is nothing',
    'src/core/machine.ts',
    'if (now < record.leaseUntil) return refuse(record, now)',
    '',
  ),
  planted('S5', 'a possible effect is forgotten', EXECUTION, '      mayHaveHadEffect = true\n', ''),
  planted(
    'L1',
    'a destroyed response keeps its key',
    CAPTURE,
    'void execution.fail().then(() => destroyNow(error))',
    'destroyNow(error)',
  ),
  planted(
    'L2',
    'a late error hangs up on an answer that is being stored',
    CAPTURE,
    "    if (stage === 'ended' && !finished) return\n",
    '',
  ),
  planted(
    'L2',
    'a response that is being stored looks sent',
    'src/express/internals.ts',
    "  Object.defineProperty(res, 'writableEnded', ENDED)\n",
    "  Object.defineProperty(res, 'writableEnded', ENDED)\n  Object.assign(res, { finished: true })\n",
  ),
  planted(
    'L2',
    'misuse goes unheard',
    MIDDLEWARE,
    'protect(req as Req & Extended, res, next).catch(next)',
    'void protect(req as Req & Extended, res, next)',
  ),
  planted('L3', 'runs are never counted as over', 'src/core/engine.ts', '    active--\n', ''),
  planted('L3', 'the timer of a run outlives it', EXECUTION, '    clearTimeout(timer)\n', '    timer.ref()\n'),
]
