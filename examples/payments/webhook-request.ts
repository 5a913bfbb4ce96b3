import { lookup } from 'node:dns'
import http from 'node:http'
import https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'

/** The address of a subscription leads to where nothing is sent. */
export class AddressRefused extends Error {}

export interface WebhookRequest {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly timeLimitMs: number
  readonly mayReach: (address: string) => boolean
}

/**
 * Sends a POST, and resolves with the status of its response: nothing of the body is waited for, and no redirect is
 * followed, since what was signed for one address is sent to no other.
 *
 * @throws AddressRefused before anything is sent
 */
export async function post({ url, headers, body, timeLimitMs, mayReach }: WebhookRequest): Promise<number> {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (isIP(host) !== 0 && !mayReach(host)) throw new AddressRefused()
  const { request } = url.protocol === 'https:' ? https : http
  return new Promise((resolve, reject) => {
    const sending = request(url, {
      method: 'POST',
      headers: { ...headers, 'content-length': Buffer.byteLength(body) },
      agent: false,
      lookup: lookupWithin(mayReach),
      signal: AbortSignal.timeout(timeLimitMs),
    })
    sending.on('error', reject)
    sending.once('response', (response) => {
      resolve(response.statusCode ?? 0)
      response.destroy()
    })
    sending.end(body)
  })
}

/** The connection is made to the very addresses that were looked at: a name that means another one a moment later gains nothing. */
function lookupWithin(mayReach: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? []
      if (error !== null || first === undefined) return callback(error ?? new Error('No address'), [])
      if (!addresses.every(({ address }) => mayReach(address))) return callback(new AddressRefused(), [])
      if (options.all) callback(null, addresses)
      else callback(null, first.address, first.family)
    })
  }
}
