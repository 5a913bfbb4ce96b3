import express, { type Express, type Request, type RequestHandler } from 'express'
import { type IdempotencyEvent, type IdempotencyOptions, idempotency, type Middleware, type Store } from 'once-per-key'
import type { Logger } from 'pino'
import type { Availability } from './availability.js'
import { decisionLog } from './decision-log.js'
import { checkDemoCrash, die, isToCrash, mortal } from './demo-crash.js'
import { checkDemoDelay, demoDelay } from './demo-delay.js'
import { demoEvents } from './demo-events.js'
import { checkDemoOperation, checkOperationName, countRun, runsOf } from './demo-operation.js'
import { jsonBody } from './json-body.js'
import { type Books, BooksUnavailable, type Ledger, memoryLedger } from './ledger.js'
import { madeOnce } from './made-once.js'
import { authenticate, merchantOf } from './merchants.js'
import type { Operation } from './operation.js'
import { subscribersOf } from './operations/webhook-subscription.js'
import { operations } from './operations.js'
import { servePage } from './playground/page.js'
import { recordFeed } from './playground/record-feed.js'
import { noSuchPath, notFound, onlyMethods, sendProblems, validated } from './problems.js'
import { type EventContent, eventOf } from './webhook-event.js'
import type { WebhookSender } from './webhook-sender.js'

export interface AppOptions {
  readonly store: Store
  readonly logger: Logger
  readonly ledger?: Ledger
  /** Absent: no events are sent. */
  readonly webhooks?: Pick<WebhookSender, 'send'>
  /** Of what store and ledger need; absent: nothing that could go away. */
  readonly availability?: Availability
  /** Where the playground's page is. Absent: it is not served. */
  readonly pageFolder?: string
  /** @default the library's */
  readonly leaseMs?: number
  /** @default the library's */
  readonly unknownOutcome?: 'rerun' | 'refuse'
}

export interface App {
  readonly app: Express
  /** Ends the answers that have no end of their own, for good. */
  close(): void
  /** Resolves when no operation is running. */
  idle(): Promise<void>
}

/** The payments service, without a port. */
export function createApp(options: AppOptions): App {
  const {
    store,
    logger,
    ledger = memoryLedger(),
    webhooks,
    availability,
    pageFolder,
    leaseMs,
    unknownOutcome,
  } = options
  const log = decisionLog(logger, () => availability?.isAway() ?? false)
  const feed = recordFeed((name) => once.inspect(name))
  const shared: IdempotencyOptions<Request> = {
    store,
    // The account and not its API key: keys are rolled, and a retry may come with the new one.
    scope: (req: Request) => req.merchant?.id,
    onEvent(event: IdempotencyEvent) {
      log(event)
      feed.hear(event)
    },
    // The store has a quarter of a lease to answer, at most.
    ...(leaseMs !== undefined && { leaseMs, storeTimeoutMs: Math.min(2_000, Math.floor(leaseMs / 4)) }),
    ...(unknownOutcome !== undefined && { unknownOutcome }),
  }
  const middlewares: Middleware[] = []
  const once = opened(shared)
  const onceOrDie = unlessItDies(once, shared)

  function opened(given: IdempotencyOptions<Request>): Middleware {
    const middleware = idempotency(given)
    middlewares.push(middleware)
    return middleware
  }

  /** A request whose owner is to die is claimed on other terms; the record is the same. */
  function unlessItDies(middleware: Middleware, given: IdempotencyOptions<Request>): RequestHandler {
    const dying = opened(mortal(given))
    return (req, res, next) => (isToCrash(req) ? dying : middleware)(req, res, next)
  }

  /** An operation that still takes the key in its body has a middleware of its own. */
  function onceFor({ legacyKey }: Operation): RequestHandler {
    if (legacyKey === undefined) return onceOrDie
    const withField = { ...shared, legacyKey }
    return unlessItDies(opened(withField), withField)
  }

  function run(operation: Operation): RequestHandler {
    return async (req, res) => {
      await demoDelay(req)
      const input = validated(operation.schema, req.body)
      const merchant = merchantOf(req)
      const work = async (books: Books) => {
        const context = { books, now: new Date() }
        let isFound = true
        const entry = await madeOnce(context, req.idempotency, async () => {
          isFound = false
          const made = await operation.run(input, context)
          await countRun(req, context)
          return made
        })
        return { entry, isFound, tell: await teller(books, req, operation.emits?.(entry, merchant)) }
      }
      const { entry, isFound, tell } = await ledger.transaction(merchant.id, work).catch((error: unknown) => {
        // The effect may be there: the key is not released as if nothing had happened. The next attempt finds out.
        if (error instanceof BooksUnavailable && error.mayHaveCommitted) req.idempotency?.mayHaveEffect()
        throw error
      })
      if (isToCrash(req)) return die(req, res)
      // Behind the transaction, and for an outcome that was found too: whoever made it may have died before it could tell.
      tell()
      if (isFound) res.set('x-demo-outcome', 'found')
      res.status(operation.status).json(entry)
    }
  }

  /** Tells the subscribers of this moment, later. */
  async function teller(books: Books, req: Request, content: EventContent | undefined): Promise<() => void> {
    if (content === undefined || webhooks === undefined) return () => {}
    const subscribers = await subscribersOf(books, content.type)
    return () => webhooks.send(merchantOf(req).id, eventOf(content, req.idempotency), subscribers)
  }

  const fireDemoEvent: RequestHandler = async (req, res) => {
    const { type } = req.params
    const merchant = merchantOf(req)
    if (!isDemoEvent(type)) throw notFound('event type', `${type}`)
    const content = demoEvents[type](merchant, new Date())
    const subscribers = await ledger.transaction(merchant.id, (books) => subscribersOf(books, type))
    const event = eventOf(content, req.idempotency)
    webhooks?.send(merchant.id, event, subscribers)
    res.status(202).json({ id: event.id, type, subscriptions: subscribers.length })
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

  const tellRuns: RequestHandler = async (req, res) => {
    const name = `${req.params.name}`
    res.json({ name, runs: await ledger.transaction(merchantOf(req).id, (books) => runsOf(books, name)) })
  }

  /** 200 either way: without its store the service still answers, if with 503, and no other process could do better. */
  const health: RequestHandler = async (_req, res) => {
    const isAvailable = (await availability?.check()) ?? true
    res.json(isAvailable ? { status: 'ok' } : { status: 'degraded', redis: 'away' })
  }

  const app = express()
  app.disable('x-powered-by')
  // One spelling for each path: the path counts when two requests are compared.
  app.enable('case sensitive routing').enable('strict routing')

  const demoChecks = [checkDemoDelay, checkDemoCrash, checkDemoOperation]
  for (const operation of operations) {
    const { path } = operation
    app.post(path, authenticate, ...jsonBody, ...demoChecks, onceFor(operation), run(operation))
    app.all(path, onlyMethods('POST'))
  }

  app.post('/demo/events/:type', authenticate, ...jsonBody, once, fireDemoEvent)
  app.all('/demo/events/:type', onlyMethods('POST'))
  app.get('/demo/operations/:name', authenticate, checkOperationName, tellRuns)
  app.head('/demo/feed', onlyMethods('GET')) // It has no end that a HEAD could wait for.
  app.get('/demo/feed', authenticate, feed.open)
  app.all('/demo/feed', onlyMethods('GET'))
  app.get('/operations', authenticate, listOperations)
  app.get('/health', health)
  app.all(['/demo/operations/:name', '/operations', '/health'], onlyMethods('GET', 'HEAD'))
  if (pageFolder !== undefined) servePage(app, pageFolder)
  app.use(noSuchPath)
  app.use(sendProblems(logger))

  return {
    app,
    close: feed.close,
    async idle() {
      await Promise.all(middlewares.map((middleware) => middleware.idle()))
    },
  }
}

function isDemoEvent(type: unknown): type is keyof typeof demoEvents {
  return typeof type === 'string' && Object.hasOwn(demoEvents, type)
}
