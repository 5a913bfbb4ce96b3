import { optionRules, resolveOptions } from '../../core/index.js'
import { type BindingLawsOptions, type OpenBinding, runBindingLaw } from './binding-bench.js'
import { failureLaws } from './failure-laws.js'
import { legacyKeyLaws } from './legacy-key-laws.js'
import { refusalLaws } from './refusal-laws.js'
import { replyLaws } from './reply-laws.js'
import { endLaws, runLaws } from './run-laws.js'

/**
 * The conformance suite for your own binding: one test for each thing that every binding of the library does. It
 * registers them with the `test` function of any runner and brings its own assertions and its own store, so it runs on
 * vitest, node:test and Jest. A failure says which promise was broken, what was expected and what was seen.
 *
 * `open` serves one application; it is called up to twice for each test, and `close` at its end. The application is a
 * handler for every method and path, written in no framework's words, behind the framework's own parsers: JSON, forms and
 * `application/octet-stream` reach the handler, with bodies of up to 1 MiB. Serve it on a free port of 127.0.0.1, to which
 * the laws send real HTTP; or give a `send`, if the framework needs no server. A `send` answers what the framework's
 * server would: 500 for what nobody catches.
 *
 * Streams are not among the laws.
 *
 * A binding for Fetch, on node:test:
 *
 * @example
 * import { test } from 'node:test'
 * import { bindingLaws, bindOptions } from 'once-per-key/testing'
 *
 * bindingLaws(
 *   test,
 *   (app) => {
 *     const once = myBinding(bindOptions(app, (request: Request, name) => request.headers.get(name)))
 *     return { send: (request) => answer(app, once, request), idle: once.idle }
 *   },
 *   { joinsHeaderLines: true, hasNoErrorHandler: true },
 * )
 */
export function bindingLaws(
  test: (name: string, fn: () => Promise<void>) => unknown,
  open: OpenBinding,
  options: BindingLawsOptions = {},
): void {
  resolveOptions('bindingLaws()', options, RULES)
  for (const { name, holds, check } of LAWS) {
    if (holds(options)) test(name, () => runBindingLaw(open, check))
  }
}

const { aBoolean } = optionRules
/** A mistyped name would leave out its laws without a word. */
const RULES = {
  joinsHeaderLines: aBoolean,
  hasNoErrorHandler: aBoolean,
  hidesErrors: aBoolean,
  readsBodies: aBoolean,
}

const LAWS = [...replyLaws, ...runLaws, ...endLaws, ...failureLaws, ...refusalLaws, ...legacyKeyLaws]
