import type { Server } from 'node:http'
import type { Operator } from 'once-per-key/http'
import type { BindingApp, BindingCall, BindingLawsOptions, BindingReply } from 'once-per-key/testing'

/**
 * What the suite needs of a framework. To add one, write one file in `frameworks` that exports a `Framework` (or several:
 * versions, servers), and put it into the list of `frameworks/index.ts`. All behaviours and the cross test run on it then.
 *
 * `start` serves one application on a free port of 127.0.0.1:
 *
 * - a route for every method and path: `app.options` go to the framework's `idempotency` (a plugin, a middleware); where
 *   `app.isProtected` is false, the same application without it;
 * - in front of it what such an application has there: the framework's own parsers, so that JSON, forms and
 *   `application/octet-stream` reach the handler; bodies of up to 1 MiB;
 * - behind it `app.handler`, which is written in no framework's words. Give it a `BindingCall`, and put what it returns in the
 *   framework's words: `res.json(…)`, `reply.send(…)`, `ctx.body = …`, `Response.json(…)`. What it throws is thrown on, as a
 *   handler of the framework would;
 * - `app.onError`, where the framework has error handlers: registered as one.
 *
 * Options of the suite look at requests by `app.headerOf` alone: replace it by what reads a header of whatever the option
 * functions are given (`bindOptions` does so).
 */
export interface Framework extends BindingLawsOptions {
  readonly name: string
  start(app: App): Promise<Started>
}

/** An application of the published laws whose handler may stream, too. */
export interface App extends Omit<BindingApp, 'handler' | 'onError'> {
  readonly handler: Handler
  readonly onError?: ((error: unknown) => Reply) | undefined
}

export interface Started {
  readonly port: number
  readonly server: Server
  readonly once: Operator & { idle(): Promise<void> }
  close(): Promise<void>
}

/** A handler, in no framework's words. */
export type Handler = (call: BindingCall) => Reply | Promise<Reply>

/** What a handler answers; one of the bodies, or none. */
export interface Reply extends BindingReply {
  /** Written as it is read, and no faster; where it throws, the handler has failed in the middle of its answer. */
  readonly stream?: AsyncIterable<Uint8Array>
}
