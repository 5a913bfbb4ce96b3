import type { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'

/**
 * Checks that a delivery comes from its sender. Receives the body's raw bytes and the request's headers, with names in
 * lower case; returns `true` or `false`.
 */
export type Verify = (raw: Buffer, headers: IncomingHttpHeaders) => boolean | Promise<boolean>
