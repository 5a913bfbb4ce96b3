/** What the scripts of an owner's commands are given (`OWN` and `ANSWER` of `scripts.ts` read it), in few arguments. */
import { Buffer, isAscii } from 'node:buffer'
import type { Answer } from '../../src/core/index.js'

/** What differs from one operation to the next; a claim has no attempt yet. */
interface Own {
  readonly token: string
  readonly fingerprint: string
  readonly attempt?: number
  readonly uncertain?: boolean
}

export function encodeOwnerArgument(own: Own, uncertain = own.uncertain): string {
  const { token, fingerprint, attempt = 0 } = own
  return `${attempt} ${uncertain ? 1 : 0} ${Buffer.byteLength(token)} ${token}${fingerprint}`
}

interface Terms {
  readonly leaseMs?: number
  readonly retentionMs: number
  readonly failedMs?: number
  readonly unknownOutcome?: 'rerun' | 'refuse'
}

export function encodeTerms({ leaseMs = 0, retentionMs, failedMs = 0, unknownOutcome = 'rerun' }: Terms): string {
  return `${leaseMs} ${retentionMs} ${failedMs} ${unknownOutcome}`
}

export function encodeHead({ status, statusMessage, headers, body }: Answer): string {
  const kept = body === null ? 0 : 1
  return `${status} ${kept} ${Buffer.byteLength(statusMessage)} ${statusMessage}${JSON.stringify(headers)}`
}

/** Text, because clients write a command of strings in one piece; ASCII has the same bytes in all their encodings. */
export function encodeBody({ body }: Answer): string | Buffer {
  return body === null ? '' : encodeBytes(body)
}

export function encodeBytes(given: Uint8Array): string | Buffer {
  const { buffer, byteOffset, byteLength } = given
  const bytes = Buffer.isBuffer(given) ? given : Buffer.from(buffer, byteOffset, byteLength)
  return byteLength <= MAX_BYTES_AS_TEXT && isAscii(bytes) ? bytes.toString('latin1') : bytes
}

/** Above this size, copying the text costs more than sending a second piece. */
const MAX_BYTES_AS_TEXT = 4_096
