import express, { type Express, type Request, type RequestHandler } from 'express'
import {
  type IdempotencyContext,
  type IdempotencyEvent,
  type IdempotencyOptions,
  idempotency,
  type Middleware,
  type Store,
} from 'once-per-key'
import type { Logger } from 'pino'
import type { Availability } from './availability.js'
import { decisionLog } from './decision-log.js'
import { checkDemoCrash, die, isToCrash, mortal, untilEndOfTransaction } from './demo-crash.js'
import { checkDemoDelay, demoDelay } from './demo-delay.js'
import { demoEvents } from './demo-events.js'
import { checkDemoHandler, isInSteps, isNaive, isOneTransaction } from './demo-handler.js'
import { checkDemoOperation, checkOperationName, countRun, runsOf } from './demo-operation.js'
import { jsonBody } from './json-body.js'
import { type Books, certainWhereItIs, type Ledger, memoryLedger } from './ledger.js'
import { madeOnce } from './made-once.js'
import { authenticate, type Merchant, merchantOf } from './merchants.js'
import type { Operation } from './operation.js'
import { createOrder } from './operations/order.js'
import { subscribersOf } from './operations/webhook-subscription.js'
import { operations } from './operations.js'
import { orderInSteps } from './order-in-steps.js'
import { onlyOwnHost } from './own-host.js'
import { servePage } from './playground/page.js'
import { recordFeed } from './playground/record-feed.js'
import { noSuchPath, notFound, onlyMethods, sendProblems, validated } from './problems.js'
import { samplesOf } from './samples.js'
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
  /** A name, besides `localhost` and addresses, by which requests may call it. */
  readonly host?: string
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
    host,
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
  const onceOrDie = inItsWay(once, shared)

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

  /** Claimed before the handler runs, or in one transaction with all that it does. Both serve the same keys. */
  function inItsWay(middleware: Middleware, given: IdempotencyOptions<Request>): RequestHandler {
    const claimed = unlessItDies(middleware, given)
    if (ledger.withRecord === undefined) return claimed
    const inTransaction: IdempotencyOptions<Request> = { ...given, effects: 'in-transaction' }
    const unclaimed = unlessItDies(opened(inTransaction), inTransaction)
    return (req, res, next) => (isOneTransaction(req) ? unclaimed : claimed)(req, res, next)
  }

  /** An operation that still takes the key in its body has a middleware of its own. */
  function onceFor({ legacyKey }: Operation): RequestHandler {
    if (legacyKey === undefined) return onceOrDie
    const withField = { ...shared, legacyKey }
    return inItsWay(opened(withField), withField)
  }

  function handlerOf(operation: Operation): RequestHandler {
    const atOnce = run(operation)
    if (operation.path !== createOrder.path) return atOnce
    const inSteps = orderInSteps(ledger)
    return (req, res, next) => (isInSteps(req) ? inSteps : atOnce)(req, res, next)
  }

  function run(operation: Operation): RequestHandler {
    return async (req, res) => {
      await demoDelay(req)
      const tellOf = (made: { readonly isFound: boolean; readonly entry: object }): void => {
        if (made.isFound) res.set('x-demo-outcome', 'found')
        res.status(operation.status).json(made.entry)
      }
      const input = validated(operation.schema, req.body)
      const merchant = merchantOf(req)
      const idempotency = isNaive(req) ? undefined : req.idempotency
      // Where effect and record commit together, nobody has to look for what an earlier attempt did.
      const { withRecord } = ledger
      const looks = withRecord === undefined ? idempotency : undefined
      const work = async (books: Books) => {
        const context = { books, now: new Date() }
        let isFound = true
        const entry = await madeOnce(context, looks?.deriveKey('books'), async () => {
          isFound = false
          const made = await operation.run(input, context)
          await countRun(req, context)
          return made
        })
        const content = operation.emits?.(entry, merchant)
        const tell = content === undefined ? () => {} : await teller(books, merchant, content, idempotency)
        return { entry, isFound, tell }
      }
      if (withRecord !== undefined && idempotency !== undefined) {
        if (isToCrash(req)) {
          await withRecord.abandoned(merchant.id, work, () => untilEndOfTransaction(req))
          return die(req, res)
        }
        const { tell } = await withRecord.answered(idempotency, merchant.id, work, tellOf)
        tell()
        return
      }
      const made = await ledger.transaction(merchant.id, work).catch(certainWhereItIs)
      if (isToCrash(req)) return die(req, res)
      // Behind the transaction, and for an outcome that was found too: whoever made it may have died before it could tell.
      made.tell()
      tellOf(made)
    }
  }

  /** Tells the subscribers of this moment, later. */
  async function teller(
    books: Books,
    { id }: Merchant,
    content: EventContent,
    idempotency: IdempotencyContext | undefined,
  ): Promise<() => void> {
    if (webhooks === undefined) return () => {}
    const subscribers = await subscribersOf(books, content.type)
    return () => webhooks.send(id, eventOf(content, idempotency), subscribers)
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
    const samples = await ledger.transaction(merchantOf(req).id, (books) =>
      samplesOf(operations, { books, now: new Date() }),
    )
    res.json(operations.map(({ path, title }, i) => ({ path, title, sample: samples[i] })))
  }

  const tellRuns: RequestHandler = async (req, res) => {
    const name = `${req.params.name}`
    res.json({ name, runs: await ledger.transaction(merchantOf(req).id, (books) => runsOf(books, name)) })
  }

  /** How the handlers have their effect once, whatever crashes. */
  const tellHandler: RequestHandler = (_req, res) => {
    res.json({ handler: ledger.withRecord === undefined ? 'looks' : 'transaction' })
  }

  /** 200 either way: without its store the service still answers, if with 503, and no other process could do better. */
  const health: RequestHandler = async (_req, res) => {
    const isAvailable = (await availability?.check()) ?? true
    res.json(isAvailable ? { status: 'ok' } : { status: 'degraded', [availability?.name ?? 'store']: 'away' })
  }

  const app = express()
  app.disable('x-powered-by')
  // One spelling for each path: the path counts when two requests are compared.
  app.enable('case sensitive routing').enable('strict routing')
  app.use(onlyOwnHost(host))

  const demoChecks = [checkDemoDelay, checkDemoCrash, checkDemoOperation]
  for (const operation of operations) {
    const { path } = operation
    const checks = [...demoChecks, checkDemoHandler(operation, ledger)]
    app.post(path, authenticate, ...jsonBody, ...checks, onceFor(operation), handlerOf(operation))
    app.all(path, onlyMethods('POST'))
  }

  app.post('/demo/events/:type', authenticate, ...jsonBody, once, fireDemoEvent)
  app.all('/demo/events/:type', onlyMethods('POST'))
  app.get('/demo/operations/:name', authenticate, checkOperationName, tellRuns)
  app.get('/demo/handler', tellHandler)
  app.head('/demo/feed', onlyMethods('GET')) // It has no end that a HEAD could wait for.
  app.get('/demo/feed', authenticate, feed.open)
  app.all('/demo/feed', onlyMethods('GET'))
  app.get('/operations', authenticate, listOperations)
  app.get('/health', health)
  app.all(['/demo/operations/:name', '/demo/handler', '/operations', '/health'], onlyMethods('GET', 'HEAD'))
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
