import type { RequestListener } from 'node:http'
import type { DynamicModule, Type } from '@nestjs/common'
import type { Request, Response } from 'express'
import type { Store } from 'once-per-key/core'
import type { Work } from '../payout.js'
import { loadPeer } from '../peer-packages.js'
import { MERCHANT, type Open, type Protection } from '../protection.js'
import { openNodeRedis } from '../redis-commands.js'

/** Nest alone, on its platform Express. */
export const bareNest: Open = async (work) => createOnNest(work, [], [])

/** This library, on the same version of Nest. */
export const oursNestMemory: Open = async (work) => {
  const { MemoryStore } = loadPeer<typeof import('once-per-key/memory')>('once-per-key/memory')
  return createOurs(work, new MemoryStore({ maxBytes: 8 * 2 ** 30, maxEntries: 4_000_000 }))
}

export const oursNestRedis: Open = async (work, { redisPort }) => {
  const { RedisStore } = loadPeer<typeof import('once-per-key/redis')>('once-per-key/redis')
  const { client, close } = await openNodeRedis(redisPort)
  return createOurs(work, new RedisStore({ client }), close)
}

function createOurs(work: Work, store: Store, closeClient?: () => Promise<unknown>): Promise<Protection> {
  const { IdempotencyModule, Idempotent } = loadPeer<typeof import('once-per-key/nest')>('once-per-key/nest')
  const options = { store, scope: (request: Request) => request.get(MERCHANT) }
  return createOnNest(work, [IdempotencyModule.forRoot(options)], [Idempotent()], closeClient)
}

/** As its README sets it up: the module with a store by its name, and a decorator for the route. */
export const nodeIdempotencyNestMemory: Open = async (work) => createNodeIdempotency(work, { adapter: 'memory' })

export const nodeIdempotencyNestRedis: Open = async (work, { redisPort }) =>
  createNodeIdempotency(work, { adapter: 'redis', options: { url: `redis://127.0.0.1:${redisPort}` } })

interface NodeIdempotencyNest {
  readonly NodeIdempotencyModule: { forRootAsync(options: { storage: NamedStorage }): DynamicModule }
  Idempotent(): MethodDecorator
}

interface NamedStorage {
  readonly adapter: 'memory' | 'redis'
  readonly options?: { readonly url: string }
}

function createNodeIdempotency(work: Work, storage: NamedStorage): Promise<Protection> {
  const { NodeIdempotencyModule, Idempotent } = loadPeer<NodeIdempotencyNest>('@node-idempotency/nestjs')
  return createOnNest(work, [NodeIdempotencyModule.forRootAsync({ storage })], [Idempotent()])
}

/** An application of the newest Nest that the peers support. A handler fails as Nest's users let it fail: it throws. */
async function createOnNest(
  work: Work,
  imports: readonly DynamicModule[],
  decorators: readonly MethodDecorator[],
  closeClient?: () => Promise<unknown>,
): Promise<Protection> {
  loadPeer('reflect-metadata')
  const nest = loadPeer<typeof import('@nestjs/common')>('@nestjs/common')
  const { NestFactory } = loadPeer<typeof import('@nestjs/core')>('@nestjs/core')

  class Payouts {
    async create(req: Request, res: Response): Promise<unknown> {
      const { status, location, body } = await work(req)
      if (status >= 400) throw new nest.HttpException(body, status)
      res.location(location)
      return body
    }
  }
  class Application {}

  nest.Req()(Payouts.prototype, 'create', 0)
  nest.Res({ passthrough: true })(Payouts.prototype, 'create', 1)
  decorate(Payouts, 'create', [nest.Post('payouts'), ...decorators])
  nest.Controller()(Payouts)
  nest.Module({ imports: [...imports], controllers: [Payouts] })(Application)

  const app = await NestFactory.create(Application, { logger: false })
  await app.init()
  return {
    listener: app.getHttpAdapter().getInstance() as RequestListener,
    async close() {
      await app.close()
      await closeClient?.()
    },
  }
}

/** As the compiler applies decorators, which the builder of the benchmark does not. */
function decorate({ prototype }: Type, name: string, decorators: readonly MethodDecorator[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name) as PropertyDescriptor
  for (const decorator of decorators) decorator(prototype, name, descriptor)
}
