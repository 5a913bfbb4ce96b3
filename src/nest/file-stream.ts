import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'

/** A response of the run whose handler returned a `StreamableFile`. */
interface Sending {
  readonly stream: Readable
  readonly response: ServerResponse
  /** The client's connection: a held response shows another one, which outlives it. */
  readonly client: Socket
  /** The platform pipes the stream, and does not look at how it ends. */
  readonly isPiped: boolean
}

/**
 * A stream is read to its end though its client has left, so that a retry is told of the result. Nest destroys the stream then. Only
 * an event stream ends with its client. A piped stream that breaks takes the response with it: otherwise its first half would pass for
 * an answer.
 */
export function outliveClient({ stream, response, client, isPiped }: Sending): void {
  const { destroy } = stream
  stream.destroy = function (this: Readable, error?: Error): Readable {
    if (error === undefined && client.destroyed && !isEventStream(response)) return this
    return destroy.call(this, error)
  }
  if (!isPiped) return
  stream.once('error', (error) => {
    if (response.headersSent) response.destroy(error)
  })
  stream.once('close', () => {
    if (!stream.readableEnded && !stream.errored) response.destroy()
  })
}

function isEventStream(response: ServerResponse): boolean {
  return String(response.getHeader('content-type')).startsWith('text/event-stream')
}
