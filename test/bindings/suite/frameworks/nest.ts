import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import type { ArgumentsHost, INestApplication, Type } from '@nestjs/common'
import type { FastifyInstance } from 'fastify'
import type { IdempotencyContext, NestRequest } from 'once-per-key/nest'
import { bindOptions } from 'once-per-key/testing'
import { type NamedNest, NESTS } from '../../../versions/nest.js'
import type { App, Framework, Reply } from '../framework.js'

const LIMIT = 1_048_576

interface Request {
  readonly body: unknown
  readonly headers: Record<string, string | string[] | undefined>
}

/** What both platforms' responses have. */
interface Response {
  status(status: number): unknown
  send(body?: unknown): unknown
}

/** As much of Nest's application on Express as is called here. */
interface ExpressApplication {
  useBodyParser(kind: 'json' | 'urlencoded' | 'raw', options: object): unknown
}

interface Platform {
  readonly name: string
  create(nest: NamedNest, root: Type): Promise<INestApplication>
  append(response: Response, headers: NonNullable<Reply['headers']>): void
}

const PLATFORMS: readonly Platform[] = [
  {
    name: 'Express',
    async create({ NestFactory }, root) {
      const app = await NestFactory.create<INestApplication & ExpressApplication>(root, SILENT)
      app.useBodyParser('json', { limit: LIMIT })
      app.useBodyParser('urlencoded', { limit: LIMIT, extended: false })
      app.useBodyParser('raw', { limit: LIMIT })
      return app
    },
    append(response, headers) {
      const res = response as Response & { append(name: string, value: string): void }
      for (const [name, value] of headers) res.append(name, value)
    },
  },
  {
    name: 'Fastify',
    async create({ NestFactory, FastifyAdapter }, root) {
      const adapter = new FastifyAdapter({ bodyLimit: LIMIT, forceCloseConnections: true, onProtoPoisoning: 'ignore' })
      const app = await NestFactory.create(root, adapter, SILENT)
      // By Fastify's own means: with `useBodyParser`, Nest 10 and 11 leave out the parser of forms.
      adapter
        .getInstance<FastifyInstance>()
        .addContentTypeParser('application/octet-stream', { parseAs: 'buffer' }, (_, body, done) => done(null, body))
      return app
    },
    append(response, headers) {
      const reply = response as Response & { header(name: string, value: string | string[]): void }
      const lines = new Map<string, string[]>()
      for (const [name, value] of headers) lines.set(name, [...(lines.get(name) ?? []), value])
      for (const [name, [first = '', ...more]] of lines)
        reply.header(name, more.length === 0 ? first : [first, ...more])
    },
  },
]

const SILENT = { logger: false, forceCloseConnections: true, abortOnError: false } as const

/** Nest's controllers, with an exception filter where the application has an error handler. */
export const ON_NEST: readonly Framework[] = NESTS.flatMap((nest) =>
  PLATFORMS.map((platform) => ({
    name: `${nest.name} on ${platform.name}`,
    async start(app) {
      const server = await platform.create(nest, rootOf(nest, platform, app))
      const { onError } = app
      if (onError !== undefined) {
        const filter = {
          catch(error: unknown, host: ArgumentsHost) {
            const response = host.switchToHttp().getResponse()
            response.send(answer(nest, platform, response, onError(error)))
          },
        }
        nest.common.Catch()(filter.constructor)
        server.useGlobalFilters(filter)
      }
      await server.listen(0, '127.0.0.1')
      const { port } = server.getHttpServer().address() as AddressInfo
      const once = server.get(nest.entry.IdempotencyService)
      return { port, server: server.getHttpServer(), once, close: () => server.close() }
    },
  })),
)

function rootOf(nest: NamedNest, platform: Platform, app: App): Type {
  const { common, entry } = nest
  class Controller {
    async handle(request: Request, response: Response, idempotency: IdempotencyContext | undefined): Promise<unknown> {
      const { body } = request
      const reply = await app.handler({ idempotency, json: () => body, bytes: () => body as Uint8Array })
      return answer(nest, platform, response, reply)
    }
  }
  common.Controller()(Controller)
  const handle = Object.getOwnPropertyDescriptor(Controller.prototype, 'handle') as PropertyDescriptor
  common.All('*')(Controller.prototype, 'handle', handle)
  common.Req()(Controller.prototype, 'handle', 0)
  common.Res({ passthrough: true })(Controller.prototype, 'handle', 1)
  if (app.isProtected) {
    entry.Operation()(Controller.prototype, 'handle', 2)
    entry.Idempotent()(Controller.prototype, 'handle', handle)
  }

  class Root {}
  const options = bindOptions(app, (request: NestRequest, name) => request.headers[name]?.toString())
  common.Module({ imports: [entry.IdempotencyModule.forRoot(options)], controllers: [Controller] })(Root)
  return Root
}

/** What the handler returns then. */
function answer(
  { common }: NamedNest,
  platform: Platform,
  response: Response,
  { status, headers = [], json, text, bytes, stream, redirect }: Reply,
): unknown {
  platform.append(response, redirect === undefined ? headers : [...headers, ['Location', redirect]])
  response.status(status ?? (redirect === undefined ? 200 : 302))
  if (stream !== undefined) return new common.StreamableFile(Readable.from(stream, { objectMode: false }))
  return bytes === undefined ? (json ?? text) : new common.StreamableFile(bytes)
}
