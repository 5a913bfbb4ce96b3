import ky, { isHTTPError, type KyInstance } from 'ky'

/**
 * POSTs are sent again until their outcome is known, under the key that each is given:
 * `client.post(path, { json: body, headers: { 'Idempotency-Key': key } })`.
 */
export function retryingKy(prefixUrl: string): KyInstance {
  return ky.create({
    prefixUrl,
    retry: {
      limit: 8,
      methods: ['post'], // safe with a key
      statusCodes: [408, 409, 429, ...Array.from({ length: 100 }, (_, i) => 500 + i)],
      afterStatusCodes: [409, 429, 503], // waits as Retry-After says
      retryOnTimeout: true,
      backoffLimit: 8_000,
      jitter: true, // apart from others that wait
      shouldRetry({ error }) {
        if (!isHTTPError(error)) return undefined
        const word = error.response.headers.get('x-should-retry') // the server's word; a conflict without one is the operation's own
        return (word ? word === 'false' : error.response.status === 409) ? false : undefined
      },
    },
    // Read to its end here, an answer that breaks off is an attempt that failed.
    hooks: { afterResponse: [async (_request, _options, response) => void (await response.arrayBuffer())] },
  })
}
