import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { CertainFailure } from 'once-per-key'
import type { Next } from '../../../test/support/bindings.js'
import type { Run } from './journal.js'
import { KINDS, type Kind, type KindName } from './mounts.js'

/** What a handler is given besides the request and the response. */
export interface Situation {
  readonly run: Run
  readonly request: string
  readonly sameness: string
  readonly mayHaveEffect: () => void
  /** Opened from outside. */
  readonly released: () => Promise<void>
}

// biome-ignore lint/suspicious/noExplicitAny: handlers use what Express adds to a response, where it is there
type Response = ServerResponse & Record<string, any>

/** An error that a handler means: no input alone causes it. */
export class PlannedFailure extends Error {
  constructor(readonly situation: Situation) {
    super('planned')
  }
}

/** The same, where the handler knows that there was no effect. */
export function plannedCertainFailure(situation: Situation): CertainFailure {
  return new CertainFailure('planned', { cause: new PlannedFailure(situation) })
}

const FILE = fileURLToPath(import.meta.url)

/** Answers as the kind says. What becomes of its promise is the framework's business, as in an application. */
export async function answer(
  kind: KindName,
  req: IncomingMessage,
  res: Response,
  next: Next,
  situation: Situation,
): Promise<void> {
  const { run } = situation
  const { gated, outcome }: Kind = KINDS[kind]
  if (gated) await situation.released()
  if (kind === 'late-refusal') situation.mayHaveEffect()
  run.ended(outcome)
  const body = bodyOf(situation)
  const head = (of: Buffer | null) => describe(res, situation, of)

  switch (kind) {
    case 'raw':
      head(body)
      res.writeHead(201, 'Größe', { 'Content-Type': 'application/octet-stream', 'X-Late': 'caf\xe9' })
      res.end(body)
      return
    case 'json': {
      const value = { run: run.number, text: `ünï ☃ \u2028 ${situation.request}` }
      head(Buffer.from(JSON.stringify(value)))
      if (typeof res.json === 'function') res.status(201).json(value)
      else res.writeHead(201, ['Content-Type', 'application/json']).end(JSON.stringify(value))
      return
    }
    case 'text': {
      const text = `caf\xe9 ${run.number}`
      head(Buffer.from(text, 'latin1'))
      res.end(text, 'latin1')
      return
    }
    case 'late':
      head(body)
      res.end(body)
      throw new PlannedFailure(situation)
    case 'slow':
      await pause(run.number % 12)
      head(body)
      res.end(body)
      return
    case 'pieces':
    case 'gated':
      head(body)
      res.write(body.subarray(0, 5))
      res.write(body.toString('base64', 5, 20), 'base64')
      await pause(1)
      res.write(body.toString('hex', 20, 21), 'hex')
      res.end(body.subarray(21))
      return
    case 'stream':
    case 'gated-stream':
      head(body)
      await pipeline(Readable.from([body.subarray(0, 9), body.subarray(9)]), res)
      return
    case 'big':
    case 'gated-big': {
      const large = Buffer.alloc(30_000, body)
      head(large)
      await pipeline(Readable.from(inPieces(large, 7_000)), res)
      return
    }
    case 'file':
      head(readFileSync(FILE))
      if (typeof res.sendFile === 'function') {
        res.sendFile(FILE, { acceptRanges: false, etag: false, lastModified: false, dotfiles: 'allow' })
      } else res.end(readFileSync(FILE))
      return
    case 'nothing':
      head(null)
      res.statusCode = 204
      res.end()
      return
    case 'moved':
      head(null)
      if (typeof res.redirect === 'function') res.redirect(303, `/elsewhere/${run.number}`)
      else res.writeHead(303, { Location: `/elsewhere/${run.number}` }).end()
      return
    case 'events':
      head(null)
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      for (let i = 0; i < 3; i++) res.write(`data: ${i}\n\n`)
      await pause(1)
      res.end()
      return
    case 'flushed':
      head(body)
      res.flushHeaders()
      res.end(body)
      return
    case 'refusal':
    case 'late-refusal':
    case 'gated-refusal':
      head(body)
      res.statusCode = 422
      res.end(body)
      return
    case 'temporary':
      head(null)
      res.writeHead(307, { Location: '/again' }).end()
      return
    case 'destroys':
      res.destroy()
      return
    case 'flushed-then-throws':
      head(null)
      res.flushHeaders()
      await pause(run.number % 3)
      throw new PlannedFailure(situation)
    case 'events-broken-off':
      head(null)
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      res.write('data: 0\n\n')
      await pause(1)
      res.destroy()
      return
    case 'source-fails':
      head(null)
      await pipeline(Readable.from(thatFails(body)), res)
      return
    case 'ends-connection':
      head(body)
      res.end(body)
      CONNECTION_ENDS[run.number % CONNECTION_ENDS.length]?.(req, res)
      return
    case 'drops-request':
      head(null)
      REQUEST_DROPS[run.number % REQUEST_DROPS.length]?.(req)
      return
    case 'half':
      head(null)
      res.write(body)
      res.destroy()
      return
    case 'passes':
      next(new PlannedFailure(situation))
      return
    case 'certain-failure':
      throw plannedCertainFailure(situation)
    case 'throws':
    case 'rejects':
      throw new PlannedFailure(situation)
  }
}

/** What lets the other side tell from a reply where it came from. */
export function describe(res: Response, { run, request, sameness }: Situation, body: Buffer | null): void {
  res.setHeader('X-Run', run.number)
  res.setHeader('X-Of', request)
  res.setHeader('X-Sameness', sameness)
  res.appendHeader('Link', `</runs/${run.number}>; rel="self"`)
  res.appendHeader('Link', '</runs>; rel="collection"')
  res.setHeader('Set-Cookie', [`session=${run.number}`, 'theme=dark'])
  if (body !== null) res.setHeader('X-Digest', createHash('sha1').update(body).digest('base64url'))
}

/** Bytes of this run alone: some are no text in any encoding. */
function bodyOf({ run, request }: Situation): Buffer {
  const bytes = Buffer.from([0, 0x80, 0xff, 0xc3, 0x28, run.number & 255])
  return Buffer.concat([Buffer.from(`run ${run.number} of ${request}: ünï ☃ `), bytes])
}

type Request = IncomingMessage

const CONNECTION_ENDS: readonly ((req: Request, res: ServerResponse) => unknown)[] = [
  (req) => req.socket.end(),
  (_req, res) => res.socket?.end(),
  (req) => req.connection.end(),
  (req) => req.socket.destroySoon(),
  (_req, res) => res.socket?.destroySoon(),
]

const REQUEST_DROPS: readonly ((req: Request) => unknown)[] = [
  (req) => req.socket.destroy(),
  (req) => req.socket.end(),
  (req) => req.socket.destroySoon(),
  (req) => req.socket.resetAndDestroy(),
  (req) => req.connection.destroy(),
]

/** More than the mount `small` keeps, and then an error. */
function* thatFails(body: Buffer): Generator<Buffer> {
  yield Buffer.alloc(5_000, body)
  throw new Error('planned')
}

function* inPieces(bytes: Buffer, length: number): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += length) yield bytes.subarray(start, start + length)
}
