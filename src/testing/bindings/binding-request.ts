import { Buffer } from 'node:buffer'
import { request as overHttp } from 'node:http'

/** A request as one law sends it. */
export interface BindingRequest {
  readonly method: string
  /** Path and query. */
  readonly target: string
  /** One line each: the same name may occur several times. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array<ArrayBuffer> | null
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal
}

/** A response as its client sees it. */
export interface BindingResponse {
  readonly status: number
  /** One line each, in their order. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array
}

export type SendToBinding = (request: BindingRequest) => Promise<BindingResponse>

/** Sends each request to a port of 127.0.0.1, on a connection of its own. */
export function sendTo(port: number): SendToBinding {
  return ({ method, target, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const lines = [['Host', `127.0.0.1:${port}`], ...headers]
      if (body !== null) lines.push(['Content-Length', `${body.byteLength}`])
      const options = { host: '127.0.0.1', port, method, path: target, headers: lines.flat(), agent: false, signal }
      const sent = overHttp(options, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const { statusCode: status = 0, rawHeaders } = response
          resolve({ status, headers: pairsOf(rawHeaders), body: Buffer.concat(chunks) })
        })
      })
      sent.on('error', reject)
      sent.end(body ?? undefined)
    })
}

function pairsOf(rawHeaders: readonly string[]): [string, string][] {
  return rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [[name, rawHeaders[i + 1] ?? '']] : []))
}
