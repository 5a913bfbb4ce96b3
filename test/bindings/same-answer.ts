import { decoded, type RawReply } from '../support/raw-client.js'

/** Of one moment, one connection or one session; the framing is compared where a test is about it. */
const VOLATILE = new Set([
  'date',
  'connection',
  'keep-alive',
  'content-length',
  'transfer-encoding',
  'set-cookie',
  'idempotent-replayed',
])

/** What two replies must share to be the same answer. */
export function essenceOf(reply: RawReply): unknown {
  const headers = reply.headers.filter(([name]) => !VOLATILE.has(name.toLowerCase()))
  return {
    status: reply.status,
    statusMessage: reply.statusMessage,
    headers: headers.sort(([a], [b]) => (a.toLowerCase() < b.toLowerCase() ? -1 : a === b ? 0 : 1)),
    body: decoded(reply).toString('latin1'),
  }
}
