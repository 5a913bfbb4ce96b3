import { once } from 'node:events'
import { Agent, request } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { CallHandler, ExecutionContext, Type } from '@nestjs/common'
import type { IdempotencyService } from 'once-per-key/nest'
import { describe, expect, test, vi } from 'vitest'
import { gate } from '../../../test/support/gate.js'
import { decorate, PLACES, serve } from './serve-nest.js'

// Nest stops what a handler sends when it sees that the client has left: by the response, and by `request.socket`.

describe.each(PLACES)('$place', (place) => {
  const { common, entry, rxjs } = place.nest
  const { from, map, Observable } = rxjs

  type Parts = () => AsyncGenerator<Buffer>

  interface Source {
    readonly source: string
    /** What the handler returns. */
    readonly returned: (parts: Parts) => unknown
    /** What an interceptor around `@Idempotent()` makes of it. */
    readonly mapped?: (parts: Parts) => unknown
  }

  const file = (parts: Parts) => new common.StreamableFile(Readable.from(parts()))
  const web = (parts: Parts) => Readable.toWeb(Readable.from(parts())) as unknown as ReadableStream

  const files: Source[] = [
    { source: 'a StreamableFile', returned: file },
    { source: 'a StreamableFile of an interceptor', returned: () => ({ paid: true }), mapped: file },
  ]
  const since12: Source[] = [
    { source: 'a generator', returned: (parts) => parts() },
    { source: 'a Readable', returned: (parts) => Readable.from(parts()) },
    { source: 'a ReadableStream', returned: web },
    { source: 'a Response', returned: (parts) => new Response(web(parts)) },
  ]
  const sources = place.nest.name === 'Nest 12' ? [...files, ...since12] : files

  async function serveSource({ returned, mapped }: Omit<Source, 'source'>, parts: Parts) {
    class Payouts {
      create() {
        return returned(parts)
      }
    }
    common.Controller('payouts')(Payouts)
    decorate(Payouts, 'create', [common.Post(), entry.Idempotent()])
    const around = {
      intercept: (_: ExecutionContext, next: CallHandler) =>
        next.handle().pipe(map((value) => mapped?.(parts) ?? value)),
    }
    const serving = await serve(place, [Payouts as Type], {
      options: { leaseMs: 8_000, maxRunMs: 8_000 },
      before: (app) => app.useGlobalInterceptors(around),
    })
    const service = serving.app.get(entry.IdempotencyService) as IdempotencyService
    return { ...serving, service, record: () => service.inspect({ scope: 'acme', key: 'k' }) }
  }

  /** Sends a request, and leaves once its handler has begun. */
  async function leave({ app, port }: Awaited<ReturnType<typeof serveSource>>, begun: Promise<void>): Promise<void> {
    const connected = once(app.getHttpServer(), 'connection') as Promise<[Socket]>
    const client = new AbortController()
    const left = fetch(`http://127.0.0.1:${port}/payouts`, {
      method: 'POST',
      headers: { 'Idempotency-Key': 'k', 'Content-Type': 'application/json' },
      body: JSON.stringify({ amount: 1 }),
      signal: client.signal,
    }).catch(() => 'left')
    const [socket] = await connected
    await begun
    const closed = once(socket, 'close')
    client.abort()
    expect(await left).toBe('left')
    await closed
  }

  describe.each([
    { when: 'has left before it begins', before: '', after: 'ab' },
    { when: 'leaves meanwhile', before: 'a', after: 'b' },
  ])('though its client $when', ({ before, after }) => {
    test.each(sources)('$source is read to its end', async (source) => {
      const { opened, open } = gate()
      const begun = gate()
      const serving = await serveSource(source, async function* () {
        for (const part of before) yield Buffer.from(part)
        begun.open()
        await opened
        for (const part of after) yield Buffer.from(part)
      })
      await leave(serving, begun.opened)
      open()
      await serving.service.idle()
      expect(await serving.post()).toMatchObject({ text: 'ab', isReplay: true })
    })
  })

  test.each(sources)(
    '$source that breaks leaves the outcome unknown, whether its client has left or not',
    async (source) => {
      const { opened, open } = gate()
      const begun = gate()
      const serving = await serveSource(source, async function* () {
        yield Buffer.from('a')
        begun.open()
        await opened
        throw new Error('The source broke')
      })
      await leave(serving, begun.opened)
      open()
      await serving.service.idle()
      expect(await serving.record()).toMatchObject({ state: 'failed', uncertain: true, attempt: 1 })
      await serving.post().catch(() => 'cut')
      expect(await serving.record()).toMatchObject({ state: 'failed', uncertain: true, attempt: 2 })
    },
  )

  test.each(sources)('$source that breaks before its first byte leaves the outcome unknown', async (source) => {
    const serving = await serveSource(source, async function* () {
      yield await Promise.reject(new Error('The file is missing'))
    })
    expect((await serving.post()).status).toBeGreaterThanOrEqual(400)
    expect(await serving.record()).toMatchObject({ state: 'failed', uncertain: true })
  })

  test('a StreamableFile that has broken before it is returned leaves the outcome unknown', async () => {
    const source = Readable.from([]).on('error', () => {})
    const closed = gate()
    source.once('close', closed.open).destroy(new Error('The file is missing'))
    await closed.opened
    const { post, record } = await serveSource(
      { returned: () => new common.StreamableFile(source) },
      async function* () {},
    )
    await post().catch(() => 'cut')
    expect(await record()).toMatchObject({ state: 'failed', uncertain: true })
  })

  test('a StreamableFile with the status of a refusal is one', async () => {
    class Payouts {
      create(response: { status(code: number): unknown }) {
        response.status(422)
        return new common.StreamableFile(Readable.from(['no']))
      }
    }
    common.Controller('payouts')(Payouts)
    decorate(Payouts, 'create', [common.Post(), entry.Idempotent()], [common.Res({ passthrough: true })])
    const { app, post } = await serve(place, [Payouts as Type])
    expect(await post()).toMatchObject({ status: 422, text: 'no' })
    const service = app.get(entry.IdempotencyService) as IdempotencyService
    expect(await service.inspect({ scope: 'acme', key: 'k' })).toMatchObject({ state: 'failed', uncertain: false })
  })

  test('an Observable goes on though its client has left', async () => {
    const { opened, open } = gate()
    const begun = gate()
    const returned = () => {
      begun.open()
      return from(opened.then(() => ({ paid: true })))
    }
    const serving = await serveSource({ returned }, async function* () {})
    await leave(serving, begun.opened)
    open()
    await serving.service.idle()
    expect(await serving.post()).toMatchObject({ json: { paid: true }, isReplay: true })
  })

  test.each(['events', 'bytes'])('a StreamableFile of %s that closes before its end ends the run', async (kind) => {
    const source = new Readable({ objectMode: true, read() {} })
    source.push('data: one\n\n')
    const type = kind === 'events' ? 'text/event-stream' : 'text/plain'
    const returned = () => new common.StreamableFile(source, { type })
    const { app, port, service, record } = await serveSource({ returned }, async function* () {})
    const client = new AbortController()
    const sent = fetch(`http://127.0.0.1:${port}/payouts`, {
      method: 'POST',
      headers: { 'Idempotency-Key': 'k' },
      signal: client.signal,
    })
    if (kind === 'events') await (await sent).body?.getReader().read()
    else await vi.waitUntil(() => source.readableDidRead)
    if (kind === 'events') client.abort()
    else source.destroy()
    await sent.catch(() => 'cut')
    await service.idle()
    expect((await record())?.state).toBe(kind === 'events' ? 'completed' : 'failed')
    app.getHttpServer().closeAllConnections()
  })

  // Nest 10 begins their response before its interceptors run.
  test.skipIf(place.nest.name === 'Nest 10')('events end when their client leaves, and with them the run', async () => {
    const stopped = gate()
    class Payouts {
      create() {
        return new Observable((events) => {
          events.next({ data: 'one' })
          return () => stopped.open()
        })
      }
    }
    common.Controller('payouts')(Payouts)
    decorate(Payouts, 'create', [entry.Idempotent(), common.Sse()])
    Reflect.defineMetadata('method', common.RequestMethod.POST, Payouts.prototype.create)
    const { app, port, post } = await serve(place, [Payouts])
    const client = new AbortController()
    const { body } = await fetch(`http://127.0.0.1:${port}/payouts`, {
      method: 'POST',
      headers: { 'Idempotency-Key': 'k' },
      signal: client.signal,
    })
    await body?.getReader().read()
    client.abort()
    await stopped.opened
    await app.get(entry.IdempotencyService).idle()
    expect(await post('/payouts', { body: null })).toMatchObject({ status: 409, json: { code: 'answer_not_kept' } })
  })

  test.each(sources)('$source leaves no listener on the connection for each request', async (source) => {
    const { app } = await serveSource(source, async function* () {
      yield Buffer.from('a')
    })
    const connected = once(app.getHttpServer(), 'connection') as Promise<[Socket]>
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const { port } = app.getHttpServer().address() as AddressInfo
    const listeners: number[] = []
    for (const key of ['a', 'b', 'c', 'd']) {
      const headers = { 'Idempotency-Key': key }
      const sent = request({ port, agent, path: '/payouts', method: 'POST', headers }).end()
      const [response] = await once(sent, 'response')
      await once(response.resume(), 'end')
      const [socket] = await connected
      listeners.push(socket.listenerCount('close'))
    }
    agent.destroy()
    expect(listeners).toEqual(Array(4).fill(listeners[0]))
  })
})
