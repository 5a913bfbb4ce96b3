import type { IncomingMessage, ServerResponse } from 'node:http'
import type { RequestRun } from '../http/index.js'

type Next = (error?: unknown) => void
type HandleError = (this: unknown, error: unknown, req: IncomingMessage, res: ServerResponse, next: Next) => unknown
type RunLookup = (req: IncomingMessage) => Pick<RequestRun, 'reportError'> | undefined

/** The members of Express's router layers that are used: this method calls an error handler (Express 5 and 4). */
interface Layer {
  handleError?: HandleError
  handle_error?: HandleError
}

interface App {
  readonly router?: Router
  readonly _router?: Router
  use?(handle: (error: unknown, req: IncomingMessage, res: ServerResponse, next: Next) => void): unknown
}

interface Router {
  readonly stack?: readonly Layer[]
}

/**
 * Express does not report to middleware what a handler throws after it, and answers with the error's `status`. So this patches the
 * error method of Express's layers, once per copy of Express: the run of a request is told of each error that is being handled, and
 * of the error that its handler passes on. Errors of other requests are unaffected.
 *
 * An error that no layer receives is answered by Express itself, by the error's status. So that there always is a layer, the
 * application gets one more behind its own, which passes each error on.
 */
export function watchErrors(req: IncomingMessage, runOf: RunLookup): void {
  const { app } = req as { app?: App }
  if (app === undefined) return
  // Express 4 throws if `app.router` is read.
  const stack = (app._router ?? app.router)?.stack
  if (stack === undefined || LENGTHS.get(app) === stack.length) return
  patchLayers(stack[0], runOf)
  app.use?.(passOn)
  LENGTHS.set(app, stack.length)
}

/** The stack's length when the last layer was added: not looked for there, because tracers replace the functions of layers. */
const LENGTHS = new WeakMap<App, number>()

function passOn(error: unknown, _req: IncomingMessage, _res: ServerResponse, next: Next): void {
  next(error)
}

function patchLayers(layer: Layer | undefined, runOf: RunLookup): void {
  const layers: Layer = layer === undefined ? {} : Object.getPrototypeOf(layer)
  const name = layers.handleError === undefined ? 'handle_error' : 'handleError'
  const handleError = layers[name]
  if (handleError === undefined || WATCHING.has(handleError)) return

  const watching: HandleError = function (error, request, res, next) {
    const run = runOf(request)
    if (run === undefined) return handleError.call(this, error, request, res, next)
    run.reportError(error)
    return handleError.call(this, error, request, res, (another) => {
      if (another !== error) run.reportError(another)
      next(another)
    })
  }
  WATCHING.add(watching)
  layers[name] = watching
}

const WATCHING = new WeakSet<HandleError>()
