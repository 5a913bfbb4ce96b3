import { Buffer } from 'node:buffer'
import net from 'node:net'
import zlib from 'node:zlib'
import { type RawReply, readReply } from './raw-reply.js'

/** A request as bytes: nothing between the test and the wire adds, merges or retries anything. */
export interface RawRequest {
  readonly method?: string
  readonly path?: string
  readonly key?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent as they are, in place of JSON: their content type is among the headers. */
  readonly bytes?: Uint8Array
  readonly version?: '1.0' | '1.1'
}

export type { RawReply }

export interface Connection {
  readonly socket: net.Socket
  send(request: RawRequest): void
  /** The next reply in full; rejects where the connection closes before it is complete. */
  reply(method?: string): Promise<RawReply>
  /** Resolves in the very callback that brings the first byte. */
  readonly firstByte: Promise<void>
  readonly closed: Promise<void>
  /** The connection did not end: it was reset. */
  wasReset(): boolean
  /** All that has come and was not read as a reply. */
  received(): Buffer
}

/** `socket`: a connection of another kind, as of TLS. */
export function connectTo(port: number, socket = withProbe(port)): Connection {
  /** What has come, at the front of what there is room for: to join it anew for each chunk takes seconds for megabytes. */
  let room = Buffer.alloc(0)
  let used = 0
  let ended = false
  /** It did not end, but was reset: what has come may be incomplete. */
  let isReset = false
  let waiting: (() => void)[] = []
  const wake = () => {
    const woken = waiting
    waiting = []
    for (const resolve of woken) resolve()
  }
  const received = (): Buffer => room.subarray(0, used)
  const keep = (chunk: Buffer): void => {
    if (used + chunk.length > room.length) room = Buffer.concat([received()], 2 * (used + chunk.length))
    used += chunk.copy(room, used)
  }
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      ended = true
      wake()
      resolve()
    })
  })
  const firstByte = new Promise<void>((resolve) => socket.once('data', () => resolve()))
  socket.on('data', (chunk) => {
    keep(chunk)
    wake()
  })
  socket.on('error', () => {
    isReset = true // 'close' follows.
  })

  return {
    socket,
    closed,
    firstByte,
    received,
    wasReset: () => isReset,
    send: (request) => void socket.write(bytesOf(request)),
    async reply(method = 'POST') {
      while (true) {
        const bytes = received()
        const read = readReply(bytes, method, ended && !isReset)
        if (read !== null) {
          room = room.subarray(read.length)
          used -= read.length
          return read.reply
        }
        if (ended) throw new Error(`The connection closed before a complete reply came; it brought: ${bytes}`)
        await new Promise<void>((resolve) => waiting.push(resolve))
      }
    },
  }
}

/**
 * A connection on which a reset is an error, however busy this process is. Where bytes and a reset arrive together, libuv
 * reports the end of the connection instead of the reset; a write tells them apart. A server ignores the empty line.
 */
function withProbe(port: number): net.Socket {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.once('end', () => socket.write('\r\n', () => socket.end()))
  return socket
}

/** One request on a connection of its own. */
export async function request(port: number, raw: RawRequest = {}): Promise<RawReply> {
  const connection = connectTo(port)
  connection.send(raw)
  try {
    return await connection.reply(raw.method)
  } finally {
    connection.socket.destroy()
  }
}

export function bytesOf(request: RawRequest): Buffer {
  const { method = 'POST', path = '/', key, headers = {}, body, bytes, version = '1.1' } = request
  const content = bytes ?? (body === undefined ? null : Buffer.from(JSON.stringify(body)))
  const lines = [`${method} ${path} HTTP/${version}`, 'Host: test']
  if (key !== undefined) lines.push(`Idempotency-Key: ${key}`)
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`)
  if (content !== null && bytes === undefined) lines.push('Content-Type: application/json')
  if (content !== null) lines.push(`Content-Length: ${content.length}`)
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  return content === null ? head : Buffer.concat([head, content])
}

/** The body as the handler wrote it: without the content coding that a compression middleware put on it. */
export function decoded(reply: RawReply): Buffer {
  if (reply.body.length === 0) return reply.body
  switch (reply.header('content-encoding')) {
    case 'gzip':
      return zlib.gunzipSync(reply.body)
    case 'br':
      return zlib.brotliDecompressSync(reply.body)
    default:
      return reply.body
  }
}
