import type { AddressInfo } from 'node:net'
import type { INestApplication, Type } from '@nestjs/common'
import type { IdempotencyOptions } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { onTestFinished } from 'vitest'
import { type NamedNest, NESTS } from '../../versions/nest.js'

/** Each Nest on each of its platforms. */
export const PLACES = NESTS.flatMap((nest) =>
  (['Express', 'Fastify'] as const).map((platform) => ({ place: `${nest.name} on ${platform}`, nest, platform })),
)

export type Place = (typeof PLACES)[number]

// biome-ignore lint/suspicious/noExplicitAny: the request of either platform
export type Options = Partial<IdempotencyOptions<any>>

interface Setting {
  readonly options?: Options
  readonly providers?: Type[]
  readonly before?: (app: INestApplication, nest: NamedNest) => void
}

/** A handler's controller in an application of its own. */
export function create({ nest, platform }: Place, controllers: Type[], { options, providers = [] }: Setting = {}) {
  const { common, entry, NestFactory, FastifyAdapter } = nest
  class Root {}
  const all = { store: new MemoryStore(), scope: () => 'acme', ...options }
  common.Module({ imports: [entry.IdempotencyModule.forRoot(all)], controllers, providers })(Root)
  const quiet = { logger: false, abortOnError: false } as const
  return platform === 'Express'
    ? NestFactory.create(Root, quiet)
    : NestFactory.create(Root, new FastifyAdapter(), quiet)
}

export async function serve(place: Place, controllers: Type[], setting: Setting = {}) {
  const app = await create(place, controllers, setting)
  setting.before?.(app as unknown as INestApplication, place.nest) // Each copy of Nest has types of its own.
  await app.listen(0, '127.0.0.1')
  onTestFinished(() => app.close())
  const { port } = app.getHttpServer().address() as AddressInfo
  const post = async (path = '/payouts', { key = 'k', body = { amount: 1 }, headers = {} }: Sent = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: {
        ...(body && { 'Content-Type': 'application/json' }),
        ...(key && { 'Idempotency-Key': key }),
        ...headers,
      },
      body: body && JSON.stringify(body),
    })
    const text = await response.text()
    const isJson = /json/.test(response.headers.get('Content-Type') ?? '')
    return {
      status: response.status,
      isReplay: response.headers.get('Idempotent-Replayed') === 'true',
      headers: response.headers,
      text,
      json: isJson ? JSON.parse(text) : undefined,
    }
  }
  return { app, port, post }
}

interface Sent {
  readonly key?: string | null
  readonly body?: object | null
  readonly headers?: Readonly<Record<string, string>>
}

/** `@decorate() method(@arg() …)`, of whichever Nest is tried: decorators in front of a class would name one. */
export function decorate(
  type: Type,
  name: string,
  methods: readonly MethodDecorator[],
  args: readonly ParameterDecorator[] = [],
): void {
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, name) as PropertyDescriptor
  for (const decorator of [...methods].reverse()) decorator(type.prototype, name, descriptor)
  Object.defineProperty(type.prototype, name, descriptor)
  args.forEach((decorator, i) => void decorator(type.prototype, name, i))
}
