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
      statusCodes: [408, 409, 429, 500, 502, 503, 504],
      afterStatusCodes: [409, 429, 503], // waits as Retry-After says
      retryOnTimeout: true,
      shouldRetry: ({ error }) =>
        isHTTPError(error) && error.response.headers.get('x-should-retry') === 'false' ? false : undefined,
    },
    // Read to its end here, an answer that breaks off is an attempt that failed.
    hooks: { afterResponse: [async (_request, _options, response) => void (await response.arrayBuffer())] },
  })
}
