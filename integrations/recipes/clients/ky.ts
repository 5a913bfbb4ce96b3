import ky, { isHTTPError, isTimeoutError, type KyInstance } from 'ky'

/**
 * A POST with a key is sent again until its outcome is known:
 * `client.post(path, { json: body, headers: { 'Idempotency-Key': key } })`. Without a key it is sent once.
 */
export function retryingKy(prefixUrl: string): KyInstance {
  return ky.create({
    prefixUrl,
    retry: {
      limit: 8,
      methods: ['post'],
      statusCodes: [408, 409, 429, ...Array.from({ length: 100 }, (_, i) => 500 + i)],
      afterStatusCodes: [409, 429, 503], // waits as Retry-After says
      retryOnTimeout: true,
      backoffLimit: 8_000,
      jitter: true, // apart from others that wait
      shouldRetry({ error }) {
        if ((isHTTPError(error) || isTimeoutError(error)) && !hasKey(error.request)) return false
        if (!isHTTPError(error)) return undefined
        const word = error.response.headers.get('x-should-retry') // the server's word; a conflict without one is the operation's own
        return (word ? word === 'false' : error.response.status === 409) ? false : undefined
      },
    },
    hooks: {
      // Read to its end here, an answer that breaks off is an attempt that failed.
      afterResponse: [async (_request, _options, response) => void (await response.arrayBuffer())],
      // An error of the network does not say above which request it ended.
      beforeRetry: [
        ({ request, error }) => {
          if (!hasKey(request)) throw error
        },
      ],
    },
  })
}

/** Without a key, a second request could pay a second time. */
const hasKey = ({ headers }: Request) => headers.has('Idempotency-Key')
