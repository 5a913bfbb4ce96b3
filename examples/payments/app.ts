import express, { type Express, type Request, type RequestHandler } from 'express'
import { idempotency, type Middleware, type Store } from 'once-per-key'
import type { Logger } from 'pino'
import { decisionLog } from './decision-log.js'
import { checkDemoDelay, demoDelay } from './demo-delay.js'
import { jsonBody } from './json-body.js'
import { type Ledger, memoryLedger } from './ledger.js'
import { authenticate, merchantOf } from './merchants.js'
import type { Operation } from './operation.js'
import { operations } from './operations.js'
import { noSuchPath, onlyMethods, sendProblems, validated } from './problems.js'

export interface AppOptions {
  readonly store: Store
  readonly logger: Logger
  readonly ledger?: Ledger
}

export interface App {
  readonly app: Express
  /** Resolves when no operation is running. */
  idle(): Promise<void>
}

/** The payments service, without a port. */
export function createApp({ store, logger, ledger = memoryLedger() }: AppOptions): App {
  const shared = {
    store,
    // The account and not its API key: keys are rolled, and a retry may come with the new one.
    scope: (req: Request) => req.merchant?.id,
    onEvent: decisionLog(logger),
  }
  const once = idempotency(shared)
  const middlewares: Middleware[] = [once]

  /** An operation that still takes the key in its body has a middleware of its own. */
  function onceFor({ legacyKey }: Operation): Middleware {
    if (legacyKey === undefined) return once
    const onceWithField = idempotency({ ...shared, legacyKey })
    middlewares.push(onceWithField)
    return onceWithField
  }

  function run(operation: Operation): RequestHandler {
    return async (req, res) => {
      await demoDelay(req)
      const input = validated(operation.schema, req.body)
      const entry = await ledger.transaction(merchantOf(req).id, (books) =>
        operation.run(input, { books, now: new Date() }),
      )
      res.status(operation.status).json(entry)
    }
  }

  const listOperations: RequestHandler = async (req, res) => {
    const list = await ledger.transaction(merchantOf(req).id, async (books) => {
      const now = new Date()
      return Promise.all(
        operations.map(async (each) => ({
          path: each.path,
          title: each.title,
          sample: await each.sample({ books, now }),
        })),
      )
    })
    res.json(list)
  }

  const app = express()
  app.disable('x-powered-by')
  // One spelling for each path: the path counts when two requests are compared.
  app.enable('case sensitive routing').enable('strict routing')

  for (const operation of operations) {
    const { path } = operation
    app.post(path, authenticate, ...jsonBody, checkDemoDelay, onceFor(operation), run(operation))
    app.all(path, onlyMethods('POST'))
  }

  app.get('/operations', authenticate, listOperations)
  app.get('/health', (_req, res) => void res.json({ status: 'ok' }))
  app.all(['/operations', '/health'], onlyMethods('GET', 'HEAD'))
  app.use(noSuchPath)
  app.use(sendProblems(logger))

  return {
    app,
    async idle() {
      await Promise.all(middlewares.map((middleware) => middleware.idle()))
    },
  }
}
