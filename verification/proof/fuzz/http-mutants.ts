import type { Check } from '../checks.js'
import type { Mutant } from '../mutants/mutant.js'

const OF_ALL =
  'return toFingerprintOrRejection(computeRequestFingerprint(facts.method, facts.target, facts.body, ignoredMember))'

function planted(check: Check, name: string, find: string, replace: string): Mutant {
  return { name, find, replace, layer: 'fuzz', check }
}

export const mutants: readonly Mutant[] = [
  // What makes two requests the same
  planted(
    'S9',
    'the fingerprint leaves the query out',
    OF_ALL,
    OF_ALL.replace('facts.target', 'stripQuery(facts.target)'),
  ),
  planted('S9', 'the fingerprint leaves the method out', OF_ALL, OF_ALL.replace('facts.method', "'POST'")),
  planted('S9', 'the fingerprint leaves the body out', OF_ALL, OF_ALL.replace('facts.body', 'null')),
  planted('S3', 'the order of members counts', 'of listSortedNames(value)', 'of Object.keys(value)'),
  planted('S3', "the key's field counts in the fingerprint", 'if (name === ignoredMember) continue', ''),
  planted('S5', 'a body that nobody has read counts as empty', 'if (!isBodyUnseen(facts)) return true', 'return true'),
  planted('L2', 'no body is too deep', 'if (depth === MAX_DEPTH) return TOO_DEEP', ''),
  planted('S5', 'a fingerprint of its own may overlook the body', 'if (looksAtBody) assertBodyWasRead(facts)', ''),
  planted(
    'S5',
    'a body that was read elsewhere counts as an empty one',
    'if (facts.bodyWasRead) throw bodyReadElsewhereError(contentType)',
    'if (facts.bodyWasRead) return true',
  ),

  // What is a key, and whose
  planted('S5', 'of several keys the first is taken', 'if (values.length > 1) return', 'if (values.length > 9) return'),
  planted('S5', 'a key stays in its quotes', 'RFC_8941_STRING.test(text)', "text === ''"),
  planted('S5', 'a key is read as Latin-1', 'isUtf8(bytes) ?', 'bytes.length === 0 ?'),
  planted(
    'S5',
    'an invalid key is no key',
    "if ('invalid' in reading) {",
    "if ('invalid' in reading && headerName !== '') return BYPASS\n    if ('invalid' in reading) {",
  ),
  planted(
    'S5',
    "the header's name is taken literally",
    'each.toLowerCase() !== name) continue',
    '(each.toLowerCase() !== each && each !== name)) continue',
  ),
  planted('S5', 'a required key is not asked for', 'legacy === null && !required', 'legacy === null'),
  planted(
    'S5',
    'a field that is no string is no key',
    "if (typeof value !== 'string') {",
    "if (typeof value !== 'string') return null\n  else if (false) {",
  ),
  // Few requests have both.
  {
    ...planted('S9', 'the header wins over the field', "legacyKey?.whenBoth === 'field'", 'legacyKey === null'),
    scale: 0.5,
  },
  planted('S5', 'a missing value may be a key', 'findKeyFault(key) ?? findAccidentFault(key)', 'findKeyFault(key)'),
  planted(
    'S5',
    'PATCH is not covered',
    "default: ['POST', 'PUT', 'PATCH', 'DELETE']",
    "default: ['POST', 'PUT', 'DELETE']",
  ),
  planted(
    'S9',
    'a scope is coerced',
    'const fault = findScopeFault(given)\n    if (fault === null) return given as string',
    'given = String(given)\n    const fault = findScopeFault(given)\n    if (fault === null) return given as string',
  ),
  planted(
    'S9',
    'scope and key are joined without care',
    'return UNRESERVED.test(text) ? text : encodeURIComponent(text)',
    'return UNRESERVED.test(text) ? text : text',
  ),
  planted('S9', 'the scope is left out of the storage key', 'encodeNamePart(scope)', "'all'"),

  // What is stored, and given back
  planted(
    'S8',
    'text is held as UTF-8, whatever its encoding',
    "typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8'",
    "'utf8'",
  ),
  planted('S2', 'bodies are stored as text', "byteLength)).toString('latin1')", 'byteLength)).toString()'),
  planted(
    'S2',
    'of several header lines the last is given back',
    'lines[1] = [lines[1], value].flat()',
    'lines[1] = value',
  ),
  planted(
    'S2',
    'the reason phrase is not given back',
    'setHead(res, answer, extraHeaders) sendAll(res, answer, body, outlet)',
    "answer = { ...answer, statusMessage: '' }\n setHead(res, answer, extraHeaders)\n sendAll(res, answer, body, outlet)",
  ),
  planted('S2', "the first client's cookies are given to all", "new Set(['date', 'set-cookie'])", "new Set(['date'])"),
  planted(
    'S2',
    'an event stream is an answer like others',
    "return typeof contentType === 'string' &&",
    "return typeof contentType === 'string' && contentType === '' &&",
  ),
  planted('S5', 'a redirect is no success', 'status <= 399', 'status <= 299'),
  planted(
    'S8',
    'a failure is stored',
    "return judged === 'success'\n",
    "return judged === 'success' || answer !== null\n",
  ),
  planted(
    'S3',
    'an answer is sent before it is stored',
    'runAfterwards(this.#run.settle(answer, terms), (end) => this.#sendResult(end))',
    "void this.#run.settle(answer, terms)\n    this.#sendResult({ action: 'send' })",
  ),
  planted(
    'S5',
    'an answer too large to keep frees its key',
    'runAfterwards(this.#run.settle(answer, terms), (end) => this.#sendResult(end))',
    'runAfterwards(answer.body !== null ? this.#run.settle(answer, terms) : this.#run.fail(), (end) => this.#sendResult(end))',
  ),

  planted(
    'S8',
    'a head that has left counts as a success',
    'runAfterwards(this.#run.fail(), (end) => this.#sendResult(end))',
    'runAfterwards(this.#stream === undefined ? this.#run.fail() : this.#run.settle({ ...(this.#head as heads.ResponseHead), body: null }), (end) => this.#sendResult(end))',
  ),
  planted(
    'S3',
    'the end of a stream leaves before its record is completed',
    'runAfterwards(this.#run.settle(answer, terms), (end) => this.#sendResult(end))',
    "const end = this.#run.settle(answer, terms)\n    if (this.#stream !== undefined) this.#sendResult({ action: 'send' })\n    else runAfterwards(end, (later) => this.#sendResult(later))",
  ),

  // When it runs, and when it ends
  planted(
    'S11',
    'a disconnect releases',
    'this.#stream?.onClientLeft()\n',
    'this.#stream?.onClientLeft()\n    void this.#run.fail()\n',
  ),
  planted(
    'S5',
    'a replay runs the handler',
    'else answer(decision, exchange)',
    "else if (decision.action === 'replay') next()\n  else answer(decision, exchange)",
  ),
  planted('S1', 'a live lease is nothing', 'if (now < record.leaseUntil) return refuse(record, claim, now)', ''),
  planted(
    'S5',
    'a server that breaks down certainly did nothing',
    "return { how: 'perhaps', because: thrown",
    "return { how: 'certainly', because: thrown",
  ),
  planted(
    'S5',
    'a run without an answer certainly did nothing',
    "return { how: 'perhaps', because: 'no_answer' }",
    "return { how: 'certainly', because: 'no_answer' }",
  ),
  planted(
    'S5',
    'what is thrown tells nothing',
    'run.reportError(error)\n    return handleError.call',
    'return handleError.call',
  ),
  planted('S5', 'a possible effect is forgotten', 'this.mergeFacts({ mayHaveEffect: true })', ''),
  planted(
    'L1',
    'a destroyed response keeps its key',
    'runAfterwards(this.#run.fail(), (end) => this.#sendResult(end))',
    "this.#sendResult({ action: 'send' })",
  ),
  planted(
    'L2',
    'a late error hangs up on an answer that is being stored',
    'this.#hangsUp = true // The client gets the answer first.',
    'this.#sender.closeConnection(error, this.#stream)',
  ),
  planted(
    'L2',
    'a handler that ends its connection behind an answer takes it away',
    "if (this.#state !== 'finished') this.#res.destroy(",
    "if (this.#state === 'holding' || this.#state === 'streaming') this.#res.destroy(",
  ),
  planted(
    'L1',
    'a handler that hangs up through its request is taken for a client that left',
    "if (this.#state !== 'finished') this.#res.destroy(",
    "if (this.#state === 'ended') this.#res.destroy(",
  ),
  planted(
    'L2',
    'a response that is being stored looks sent',
    "  Object.defineProperty(res, 'writableEnded', YES)\n",
    "  Object.defineProperty(res, 'writableEnded', YES)\n  Object.assign(res, { finished: true })\n",
  ),
  planted(
    'L2',
    'misuse goes unheard',
    'reportError(req, error)\n  next(error ?? nothingThrownError(error))',
    'reportError(req, error)',
  ),
  planted('L3', 'runs are never counted as over', '    this.#active--\n', ''),
  planted(
    'L3',
    'the timer of a run outlives it',
    'this.#hasEnded = true\n    clearTimeout(this.#timer)',
    'this.#hasEnded = true\n    setInterval(() => this.check(), 1_000)',
  ),
]
