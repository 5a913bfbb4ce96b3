import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BINDINGS_AND_STACKS, type Step } from '../support/bindings.js'
import { gate } from '../support/gate.js'
import { connectTo, decoded, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'
import { NOISE } from './answer-styles.js'

/** A handler in two halves; the client leaves between them. */
interface Parting {
  readonly name: string
  readonly needsExpress?: true
  readonly before?: (res: ServerResponse, source: PassThrough) => Promise<void> | undefined
  // biome-ignore lint/suspicious/noExplicitAny: Express's methods where it is Express
  readonly after: (res: any, source: PassThrough, running: Promise<void> | undefined) => unknown
  readonly body: () => Buffer
}

const PARTS = Buffer.from('one two')
let file = ''
const fileBytes = Buffer.concat(Array.from({ length: 10 }, () => NOISE)).subarray(0, 600 * 1024)

const PARTINGS: readonly Parting[] = [
  { name: 'end', after: (res) => res.end('one two'), body: () => PARTS },
  {
    name: 'write, then end',
    before: (res) => void res.write('one '),
    after: (res) => res.end('two'),
    body: () => PARTS,
  },
  {
    name: 'pipe begun before',
    before: (res, source) => {
      source.pipe(res)
      source.write('one ')
      return undefined
    },
    after: (_res, source) => source.end('two'),
    body: () => PARTS,
  },
  { name: 'pipe begun after', after: (res) => Readable.from(['one ', 'two']).pipe(res), body: () => PARTS },
  {
    name: 'pipeline begun before',
    before: (res, source) => {
      source.write('one ')
      return pipeline(source, res)
    },
    after(_res, source, running) {
      source.end('two')
      return running
    },
    body: () => PARTS,
  },
  { name: 'pipeline begun after', after: (res) => pipeline(Readable.from(['one ', 'two']), res), body: () => PARTS },
  { name: 'pipeline of 600 KiB', after: (res) => pipeline(Readable.from([fileBytes]), res), body: () => fileBytes },
  { name: 'json', needsExpress: true, after: (res) => res.json([1]), body: () => Buffer.from('[1]') },
  { name: 'sendFile of 600 KiB', needsExpress: true, after: (res) => res.sendFile(file), body: () => fileBytes },
]

/** How a client leaves. */
const LEAVINGS: readonly { readonly name: string; readonly leave: (socket: Socket) => void }[] = [
  { name: 'destroys its socket', leave: (socket) => void socket.destroy() },
  { name: 'resets its connection', leave: (socket) => void socket.resetAndDestroy() },
  { name: 'half-closes', leave: (socket) => void socket.end() },
]

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'once-per-key-'))
  file = join(folder, 'receipt.bin')
  await writeFile(file, fileBytes)
})
afterAll(() => rm(folder, { recursive: true }))

describe.each(BINDINGS_AND_STACKS)('$name', ({ binding, stack }) => {
  const partings = PARTINGS.filter(({ needsExpress }) => binding.isExpress || !needsExpress)

  describe.each(LEAVINGS)('a client that $name', ({ leave }) => {
    test.each(partings)('does not change how a run ends: $name', async ({ before, after, body }) => {
      const started = gate()
      const left = gate()
      const goOn = gate()
      const ended = gate<'resolved' | 'rejected'>()
      const closed = gate<boolean>()
      const views: unknown[] = []
      const socketClosed = gate<boolean>()
      let isOver = false
      const handler: Step = async (req, res) => {
        const source = new PassThrough()
        req.socket.once('close', () => left.open())
        res.once('close', () => closed.open(isOver))
        res.socket.once('close', () => socketClosed.open(isOver))
        const running = before?.(res, source)
        started.open()
        await goOn.opened
        views.push([res.destroyed, res.closed, res.socket.destroyed, res.socket.writable])
        try {
          isOver = true
          await after(res, source, running)
          ended.open('resolved')
        } catch {
          ended.open('rejected')
        }
      }
      const serving = await serve(binding, handler, { stack })
      const client = connectTo(serving.port)
      client.send({ key: 'k' })
      await started.opened
      leave(client.socket)
      await left.opened

      expect((await request(serving.port, { key: 'k' })).json()).toMatchObject({ code: 'in_flight' })
      goOn.open()
      expect(await ended.opened).toBe('resolved')
      // 'close' reached its listeners, and not before the end.
      expect(await closed.opened).toBe(true)
      expect(await socketClosed.opened).toBe(true)
      await serving.once.idle()
      expect(views).toEqual([[false, false, false, true]])

      const replay = await request(serving.port, { key: 'k' })
      expect(replay.status).toBe(200)
      expect(replay.header('Idempotent-Replayed')).toBe('true')
      expect(decoded(replay).equals(body())).toBe(true)
      expect(serving.runs()).toBe(1)
      expect(serving.events.map(({ type }) => type)).toEqual(['claimed', 'in_flight', 'completed', 'replayed'])
    })
  })

  test('a client that leaves while its key is being claimed changes nothing either', async () => {
    const left = gate()
    const asked = gate()
    const goOn = gate()
    const ended = gate()
    const serving = await serve(
      binding,
      async (_req, res) => {
        await pipeline(Readable.from(['one ', 'two']), res)
        ended.open()
      },
      {
        stack,
        before: [
          (req, _res, next) => {
            req.socket.once('close', () => left.open())
            next()
          },
        ],
        options: {
          async scope() {
            asked.open()
            await goOn.opened
            return 'acme'
          },
        },
      },
    )
    const client = connectTo(serving.port)
    client.send({ key: 'k' })
    await asked.opened
    client.socket.destroy()
    await left.opened
    goOn.open()
    await ended.opened
    await serving.once.idle()

    const replay = await request(serving.port, { key: 'k' })
    expect(replay.header('Idempotent-Replayed')).toBe('true')
    expect(replay.body.toString()).toBe('one two')
    expect(serving.runs()).toBe(1)
  })

  test('a failure after the client left releases the key', async () => {
    const left = gate()
    const started = gate()
    let runs = 0
    const serving = await serve(
      binding,
      async (req, res, next) => {
        if (++runs > 1) return res.end('paid')
        req.socket.once('close', () => left.open())
        started.open()
        await left.opened
        next(new Error('no money'))
      },
      { stack },
    )
    const client = connectTo(serving.port)
    client.send({ key: 'k' })
    await started.opened
    client.socket.destroy()
    await left.opened
    await serving.once.idle()

    expect((await request(serving.port, { key: 'k' })).body.toString()).toBe('paid')
    expect(serving.events.map(({ type }) => type)).toEqual(['claimed', 'failed', 'claimed', 'completed'])
  })
})
