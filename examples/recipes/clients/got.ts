import got, { type Got } from 'got'

/**
 * POSTs are sent again until their outcome is known, under the key that each is given:
 * `client.post(path, { json: body, headers: { 'Idempotency-Key': key } })`.
 */
export function retryingGot(prefixUrl: string): Got {
  return got.extend({
    prefixUrl,
    timeout: { request: 10_000 }, // for one attempt
    retry: {
      limit: 8,
      methods: ['POST'], // safe with a key
      statusCodes: [408, 409, 429, 500, 502, 503, 504],
      backoffLimit: 8_000,
      maxRetryAfter: 60_000, // got would give up where Retry-After is longer than the time limit
      // Of the conflicts, and of all else, not what the server says to leave.
      calculateDelay: ({ error, computedValue }) =>
        error.response?.headers['x-should-retry'] === 'false' ? 0 : computedValue,
    },
  })
}
