import { createHmac } from 'node:crypto'

/** The three headers of Standard Webhooks 1.0. `secret` is `whsec_` and base64; each try is signed with its own time. */
export function signatureHeaders(secret: string, id: string, body: string, now: Date): Record<string, string> {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  // "integer unix timestamp (seconds since epoch)"
  const timestamp = `${Math.floor(now.getTime() / 1_000)}`
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
}
