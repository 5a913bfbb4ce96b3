import type { IncomingMessage, ServerResponse } from 'node:http'
import { isCertainFailure } from '../core/index.js'

type Next = (error?: unknown) => void
type HandleError = (this: unknown, error: unknown, req: IncomingMessage, res: ServerResponse, next: Next) => unknown

/** What Express's routers are made of: this method hands an error to an error handler (Express 5 and 4). */
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
 * Express tells middleware nothing of what a handler throws behind it, so a `CertainFailure` that the application's error
 * handler answers with 500 would look like any other failure. Express's layers are watched for it: once for each Express, and
 * nothing is done there for other errors. Calls `tell` with true while such an error is being handled, and with false where
 * a handler recovers from it.
 */
export function watchCertainFailures(
  req: IncomingMessage,
  tell: (req: IncomingMessage, failsCertainly: boolean) => void,
): void {
  const { app } = req as { app?: App }
  if (app === undefined || app === watchedApp) return
  watchedApp = app
  // Express 4 throws where somebody looks at `app.router`.
  const [layer] = (app._router ?? app.router)?.stack ?? []
  const layers: Layer = layer === undefined ? {} : Object.getPrototypeOf(layer)
  const name = layers.handleError === undefined ? 'handle_error' : 'handleError'
  const handleError = layers[name]
  if (handleError === undefined || WATCHING.has(handleError)) return

  const watching: HandleError = function (error, request, res, next) {
    if (!isCertainFailure(error)) return handleError.call(this, error, request, res, next)
    tell(request, true)
    return handleError.call(this, error, request, res, (another) => {
      if (another !== error) tell(request, false)
      next(another)
    })
  }
  WATCHING.add(watching)
  layers[name] = watching
}

/** The last one seen: most processes have one. */
let watchedApp: App | undefined
const WATCHING = new WeakSet<HandleError>()
