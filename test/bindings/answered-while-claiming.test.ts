import { describe, expect, test } from 'vitest'
import { failingStore } from '../support/failing-store.js'
import { gate } from '../support/gate.js'
import { connectTo, request } from '../support/raw-client.js'
import { FASTIFYS, type Served, serveFastify, serveKoa } from './served.js'

// A time limit, or a handler of timeouts of the framework, may answer while the store is still asked for the key. On Koa and Fastify the
// claim then stayed until `maxRunMs`, or the handler ran all the same; behind a response that had begun, Koa wrote a second head into its body.

interface Trial extends Served {
  readonly runs: () => number
  /** The codes of the errors that the application was told of. */
  readonly errors: unknown[]
  /** It was told of the first one. */
  readonly failed: Promise<void>
}

type Answers = (raw: { statusCode: number; write(text: string): unknown; end(text: string): unknown }) => unknown

interface Framework {
  readonly name: string
  /** `front` answers in front of the protection. */
  serve(front: Answers, store: ReturnType<typeof failingStore>): Promise<Trial>
}

function heard() {
  const errors: unknown[] = []
  const first = gate()
  const hear = ({ code }: { code?: unknown }) => {
    errors.push(code)
    first.open()
  }
  return { errors, failed: first.opened, hear }
}

const onKoa: Framework = {
  name: 'Koa',
  async serve(front, store) {
    let runs = 0
    const { errors, failed, hear } = heard()
    const served = await serveKoa({
      options: { store },
      before: [
        async (ctx, next) => {
          ctx.app.on('error', hear)
          if (ctx.get('X-Limited') !== '') front(ctx.res)
          await next()
        },
      ],
      handler(ctx) {
        runs++
        ctx.body = 'paid'
      },
    })
    return { ...served, errors, failed, runs: () => runs }
  },
}

const onFastify = FASTIFYS.map(
  ({ name, create }): Framework => ({
    name,
    async serve(front, store) {
      let runs = 0
      const { errors, failed, hear } = heard()
      const served = await serveFastify(create, {
        options: { store },
        before(app) {
          app.addHook('onRequest', async (request, reply) => {
            if (request.headers['x-limited'] !== undefined) front(reply.raw)
          })
          app.addHook('onError', async (_request, _reply, error) => hear(error))
        },
        routes: (app) =>
          app.post('/', async () => {
            runs++
            return 'paid'
          }),
      })
      return { ...served, errors, failed, runs: () => runs }
    },
  }),
)

const LIMITED = { key: 'k', headers: { 'X-Limited': 'yes' } }

describe.each([onKoa, ...onFastify])('$name', ({ serve }) => {
  test('a request that was answered while its key was being claimed does not run, and its key is free', async () => {
    const store = failingStore()
    let asked = gate()
    let goOn = gate()
    const slowly: Parameters<typeof store.next>[1] = async (take) => {
      asked.open()
      await goOn.opened
      return take()
    }
    const serving = await serve((raw) => {
      void asked.opened.then(() => {
        raw.statusCode = 503
        raw.end('too slow')
      })
    }, store)

    store.next('begin', slowly)
    expect(String((await request(serving.port, LIMITED)).body)).toBe('too slow')
    goOn.open()
    await serving.idle()
    expect(serving.runs()).toBe(0)
    expect(serving.events.map(({ type }) => type)).toEqual(['claimed', 'failed'])
    expect(String((await request(serving.port, { key: 'k' })).body)).toBe('paid')

    asked = gate()
    goOn = gate()
    store.next('begin', slowly)
    expect(String((await request(serving.port, LIMITED)).body)).toBe('too slow')
    goOn.open()
    await serving.idle()
    await new Promise((resolve) => setImmediate(resolve))
    expect(serving.runs()).toBe(1)
    expect(serving.errors).toEqual([])
  })

  test.each([
    { when: 'before', whenAsked: (_asked: Promise<void>, begin: () => void) => begin() },
    {
      when: 'while its key is being claimed',
      whenAsked: (asked: Promise<void>, begin: () => void) => void asked.then(begin),
    },
  ])(
    'a response that has begun $when is not held: the key is free, and nothing is sent twice',
    async ({ whenAsked }) => {
      const store = failingStore()
      const asked = gate()
      const begun = gate()
      const over = gate()
      const serving = await serve((raw) => {
        whenAsked(asked.opened, () => {
          raw.write('wait ')
          begun.open()
          void over.opened.then(() => raw.end('over'))
        })
      }, store)
      store.next('begin', async (take) => {
        asked.open()
        await begun.opened
        return take()
      })
      const connection = connectTo(serving.port)
      connection.send({ ...LIMITED, headers: { ...LIMITED.headers, Connection: 'close' } })
      await serving.failed
      over.open()
      await connection.closed // Fastify cuts it.
      expect(String(connection.received()).match(/^HTTP\/1\.1 /gm)).toHaveLength(1)
      await serving.idle()
      expect(serving.runs()).toBe(0)
      expect(serving.events.every(({ type }) => type === 'claimed' || type === 'failed')).toBe(true)
      expect(serving.errors).toContain('response_begun')
      expect(String((await request(serving.port, { key: 'k' })).body)).toBe('paid')
    },
  )
})
