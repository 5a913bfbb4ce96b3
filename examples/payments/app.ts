import express, { type Express, type Request, type RequestHandler } from 'express'
import { idempotency, type Middleware, type Store } from 'once-per-key'
import type { Logger } from 'pino'
import type { Availability } from './availability.js'
import { decisionLog } from './decision-log.js'
import { checkDemoDelay, demoDelay } from './demo-delay.js'
import { demoEvents } from './demo-events.js'
import { jsonBody } from './json-body.js'
import { type Books, BooksUnavailable, type Ledger, memoryLedger } from './ledger.js'
import { madeOnce } from './made-once.js'
import { authenticate, merchantOf } from './merchants.js'
import type { Operation } from './operation.js'
import { subscribersOf } from './operations/webhook-subscription.js'
import { operations } from './operations.js'
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
  /** @default the library's */
  readonly leaseMs?: number
  /** @default the library's */
  readonly unknownOutcome?: 'rerun' | 'refuse'
}

export interface App {
  readonly app: Express
  /** Resolves when no operation is running. */
  idle(): Promise<void>
}

/** The payments service, without a port. */
export function createApp(options: AppOptions): App {
  const { store, logger, ledger = memoryLedger(), webhooks, availability, leaseMs, unknownOutcome } = options
  const shared = {
    store,
    // The account and not its API key: keys are rolled, and a retry may come with the new one.
    scope: (req: Request) => req.merchant?.id,
    onEvent: decisionLog(logger, () => availability?.isAway() ?? false),
    // The store has a quarter of a lease to answer, at most.
    ...(leaseMs !== undefined && { leaseMs, storeTimeoutMs: Math.min(2_000, Math.floor(leaseMs / 4)) }),
    ...(unknownOutcome !== undefined && { unknownOutcome }),
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
      const merchant = merchantOf(req)
      const work = async (books: Books) => {
        const context = { books, now: new Date() }
        const entry = await madeOnce(context, req.idempotency, () => operation.run(input, context))
        return { entry, tell: await teller(books, req, operation.emits?.(entry, merchant)) }
      }
      const { entry, tell } = await ledger.transaction(merchant.id, work).catch((error: unknown) => {
        // The effect may be there: the key is not released as if nothing had happened. The next attempt finds out.
        if (error instanceof BooksUnavailable && error.mayHaveCommitted) req.idempotency?.mayHaveEffect()
        throw error
      })
      // Behind the transaction, and for an outcome that was found too: whoever made it may have died before it could tell.
      tell()
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

  /** 200 either way: without its store the service still answers, if with 503, and no other process could do better. */
  const health: RequestHandler = async (_req, res) => {
    const isAvailable = (await availability?.check()) ?? true
    res.json(isAvailable ? { status: 'ok' } : { status: 'degraded', redis: 'away' })
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

  app.post('/demo/events/:type', authenticate, ...jsonBody, once, fireDemoEvent)
  app.all('/demo/events/:type', onlyMethods('POST'))
  app.get('/operations', authenticate, listOperations)
  app.get('/health', health)
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

function isDemoEvent(type: unknown): type is keyof typeof demoEvents {
  return typeof type === 'string' && Object.hasOwn(demoEvents, type)
}
