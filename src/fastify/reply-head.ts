import { validateHeaderName, validateHeaderValue } from 'node:http'
import type { FastifyReply } from 'fastify'

type Headers = ReturnType<FastifyReply['getHeaders']>

/** Status and headers of a reply at one moment. */
export class ReplyHead {
  readonly status: number
  readonly statusMessage: string
  readonly headers: Headers
  readonly #reply: FastifyReply

  constructor(reply: FastifyReply) {
    this.#reply = reply
    this.status = reply.statusCode
    this.statusMessage = reply.raw.statusMessage ?? ''
    this.headers = { ...reply.getHeaders() }
  }

  get contentType(): string | null {
    return this.headers['content-type']?.toString() ?? null
  }

  /** What Node would throw for it; `null`: it can be sent. */
  fault(): Error | null {
    try {
      validateHeaderValue('reason phrase', this.statusMessage)
      for (const [name, value] of Object.entries(this.headers)) {
        validateHeaderName(name)
        for (const line of [value].flat()) validateHeaderValue(name, line as string)
      }
      return null
    } catch (error) {
      return error as Error
    }
  }

  /** Undoes all changes since. */
  restore(): void {
    const reply = this.#reply
    for (const name of Object.keys(reply.getHeaders())) reply.removeHeader(name)
    for (const [name, value] of Object.entries(this.headers)) reply.header(name, value)
    reply.code(this.status)
    reply.raw.statusMessage = this.statusMessage
  }
}
