import type { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'

/**
 * Says whether a delivery comes from its sender: `true` or `false`, for the body's bytes as they were sent and the
 * request's headers, with names in lower case.
 */
export type Verify = (raw: Buffer, headers: IncomingHttpHeaders) => boolean | Promise<boolean>
