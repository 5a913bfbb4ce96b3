import type { IncomingHttpHeaders } from 'node:http'
import { WebhookEventError } from 'once-per-key/receiver'

/** A header that must be there: without its id, one event would be taken for another. The sender is answered 400. `parse` gets plain headers, also on Fetch. */
export function headerOf(headers: IncomingHttpHeaders | Headers, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name]
  if (typeof value === 'string' && value !== '') return value
  throw new WebhookEventError([{ path: name, message: 'expected a header; seen: nothing' }])
}
