import { once as onceEmitted } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline, Readable } from 'node:stream'
import express, { type ErrorRequestHandler, type Request, type RequestHandler } from 'express'
import { idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { type Gate, gate } from '../../../test/support/gate.js'

/** A service as an application builds it, on Express and a MemoryStore. */
export interface Service {
  readonly port: number
  readonly server: Server
  readonly store: MemoryStore
  readonly once: ReturnType<typeof idempotency>
  /** The server's ends of the connections that are open. */
  readonly sockets: ReadonlySet<Socket>
  /** Opens when the handler of this key runs, and lets it go on. */
  doorOf(key: string): Door
  /** Closes the server and its connections, whatever still runs. */
  close(): Promise<void>
}

export interface Door {
  readonly entered: Promise<void>
  /** The client of the run that entered has gone, and the server knows it. */
  readonly deserted: Promise<void>
  goOn(): void
  /** How often the handler ran. */
  runs(): number
  remove(): void
}

/** So long that what a run leaves behind is still there when it is looked for, even on a machine that is busy. */
export const TIMES = { leaseMs: 600_000, maxRunMs: 600_000, retentionMs: 1_200_000 } as const

const MAX_ANSWER_BYTES = 32 * 1_024

/** Twice as many as live at a time: what has expired must make room. */
const MOST_RECORDS = 4_000

/** Replies to a release later, as a server does, and to all else at once: either way leaves nothing behind. */
class PartlyAsynchronous extends MemoryStore {
  override async release(...command: Parameters<MemoryStore['release']>) {
    return super.release(...command)
  }
}

export async function startService(now: () => number): Promise<Service> {
  const folder = await mkdtemp(join(tmpdir(), 'once-per-key-soak-'))
  const file = join(folder, 'statement.txt')
  await writeFile(file, 'a'.repeat(2_048))
  const store = new PartlyAsynchronous({ now, maxEntries: MOST_RECORDS })
  const doors = new Map<string, OwnDoor>()
  const inside = new WeakMap<Socket, OwnDoor>()
  const sockets = new Set<Socket>()
  // Some scopes are known at once, and some are looked up.
  const scope = ({ url }: IncomingMessage) => (url === '/make' ? Promise.resolve('acme') : 'acme')
  const once = idempotency({ store, scope, maxAnswerBytes: MAX_ANSWER_BYTES, ...TIMES })

  const app = express()
  app.use((req, res, next) => {
    res.locals.socket = req.socket // What a handler sees of it later is a view.
    next()
  })
  app.use(express.json())
  app.post('/make', once, (req, res) => {
    res
      .status(201)
      .location(`/made/${keyOf(req)}`)
      .json({ made: keyOf(req), of: req.body })
  })
  app.post('/wait', once, handlerBehind(doors, inside))
  app.post('/fail', once, (req) => {
    if (req.body.effect) req.idempotency?.mayHaveEffect()
    throw new Error('The bank said no.')
  })
  app.post('/stream', once, (_req, res) => {
    // A library that watches the connection, and stops before the response has ended.
    const watch = () => {}
    res.socket?.on('close', watch).off('close', watch)
    pipeline(Readable.from(Array.from({ length: 8 }, () => Buffer.alloc(512, 'a'))), res.type('text'), () => {})
  })
  app.post('/file', once, (_req, res) => res.sendFile(file))
  app.post('/large', once, (_req, res) => void res.type('text').send(Buffer.alloc(2 * MAX_ANSWER_BYTES, 'a')))
  app.use(showError)

  const server = createServer(app)
  server.keepAliveTimeout = 600_000
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => {
      sockets.delete(socket)
      inside.get(socket)?.desert()
    })
  })
  server.listen(0, '127.0.0.1')
  await onceEmitted(server, 'listening')

  return {
    port: (server.address() as AddressInfo).port,
    server,
    store,
    once,
    sockets,
    doorOf(key) {
      const door = openDoor(() => doors.delete(key))
      doors.set(key, door)
      return door
    },
    async close() {
      server.close()
      server.closeAllConnections()
      await onceEmitted(server, 'close')
      await rm(folder, { recursive: true })
    },
  }
}

interface OwnDoor extends Door {
  pass(): Promise<void>
  desert(): void
}

/** Who waits inside is noted, rather than listened for: a listener on a connection that is kept alive would stay there. */
function handlerBehind(doors: ReadonlyMap<string, OwnDoor>, inside: WeakMap<Socket, OwnDoor>): RequestHandler {
  return async (req, res) => {
    const door = doors.get(keyOf(req))
    if (door !== undefined) inside.set(res.locals.socket, door)
    await door?.pass()
    res.status(201).json({ waited: keyOf(req) })
  }
}

function openDoor(remove: () => void): OwnDoor {
  const entered: Gate = gate()
  const deserted: Gate = gate()
  const goesOn: Gate = gate()
  let runs = 0
  return {
    entered: entered.opened,
    deserted: deserted.opened,
    goOn: () => goesOn.open(),
    runs: () => runs,
    remove,
    desert: () => deserted.open(),
    /** Only the first waits: a second one must not run at all, and shall be seen at once. */
    async pass() {
      if (runs++ > 0) return
      entered.open()
      await goesOn.opened
    },
  }
}

function keyOf(req: Request): string {
  return req.get('Idempotency-Key') ?? ''
}

const showError: ErrorRequestHandler = (error, _req, res, _next) => {
  res.status(error.status ?? 500).json({ error: error.message })
}
