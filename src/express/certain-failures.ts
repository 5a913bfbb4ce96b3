import type { IncomingMessage, ServerResponse } from 'node:http'
import { isCertainFailure } from '../core/index.js'

type Next = (error?: unknown) => void
type HandleError = (this: unknown, error: unknown, req: IncomingMessage, res: ServerResponse, next: Next) => unknown

/** The members of Express's router layers that are used: this method calls an error handler (Express 5 and 4). */
interface Layer {
  handleError?: HandleError
  handle_error?: HandleError
}

interface App {
  readonly router?: Router
  readonly _router?: Router
}

interface Router {
  readonly stack?: readonly Layer[]
}

/**
 * Express does not report to middleware what a handler throws after it. So if the application's error handler responds
 * to a `CertainFailure` with 500, it would look like any other failure. This patches the error method of Express's
 * layers, once per copy of Express; other errors are unaffected. Calls `report` with true while a `CertainFailure` is
 * being handled, and with false if a handler recovers from it.
 */
export function watchCertainFailures(
  req: IncomingMessage,
  report: (req: IncomingMessage, failsCertainly: boolean) => void,
): void {
  const { app } = req as { app?: App }
  if (app === undefined || app === watchedApp) return
  watchedApp = app
  watch(app, report)
}

/** A function of its own, because V8 allocates on entry what the function in it refers to. */
function watch(app: App, report: (req: IncomingMessage, failsCertainly: boolean) => void): void {
  // Express 4 throws if `app.router` is read.
  const [layer] = (app._router ?? app.router)?.stack ?? []
  const layers: Layer = layer === undefined ? {} : Object.getPrototypeOf(layer)
  const name = layers.handleError === undefined ? 'handle_error' : 'handleError'
  const handleError = layers[name]
  if (handleError === undefined || WATCHING.has(handleError)) return

  const watching: HandleError = function (error, request, res, next) {
    if (!isCertainFailure(error)) return handleError.call(this, error, request, res, next)
    report(request, true)
    return handleError.call(this, error, request, res, (another) => {
      if (another !== error) report(request, false)
      next(another)
    })
  }
  WATCHING.add(watching)
  layers[name] = watching
}

/** The last application seen: most processes have one. */
let watchedApp: App | undefined
const WATCHING = new WeakSet<HandleError>()
