import got, { type Got } from 'got'

/**
 * A POST with a key is sent again until its outcome is known:
 * `client.post(path, { json: body, headers: { 'Idempotency-Key': key } })`. Without a key it is sent once.
 */
export function retryingGot(prefixUrl: string): Got {
  return got.extend({
    prefixUrl,
    timeout: { request: 10_000 }, // for one attempt
    retry: {
      limit: 8,
      methods: ['POST'],
      statusCodes: [408, 409, 429, ...Array.from({ length: 100 }, (_, i) => 500 + i)],
      backoffLimit: 8_000,
      maxRetryAfter: 60_000, // got would give up where Retry-After is longer than the time limit
      calculateDelay({ error: { options, response }, computedValue }) {
        if (!options.headers['idempotency-key']) return 0 // a second one could pay a second time
        const word = response?.headers['x-should-retry'] // the server's word; a conflict without one is the operation's own
        const isFinal = word ? word === 'false' : response?.statusCode === 409
        return isFinal || computedValue === 0 ? 0 : computedValue + Math.random() * 1_000 // apart from others that wait
      },
    },
  })
}
