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
      statusCodes: [408, 409, 429, ...Array.from({ length: 100 }, (_, i) => 500 + i)],
      backoffLimit: 8_000,
      maxRetryAfter: 60_000, // got would give up where Retry-After is longer than the time limit
      calculateDelay({ error: { response }, computedValue }) {
        const word = response?.headers['x-should-retry'] // the server's word; a conflict without one is the operation's own
        const isFinal = word ? word === 'false' : response?.statusCode === 409
        return isFinal || computedValue === 0 ? 0 : computedValue + Math.random() * 1_000 // apart from others that wait
      },
    },
  })
}
