/*
 * Which errors of a handler are not its own. Error handlers answer with an error's `status`. Where the error is another service's response,
 * that status says nothing of the operation: the bank was paid, and then the mail service answered 401. So such an error leaves the outcome
 * unknown, whatever is sent. A wrong "unknown" refuses or warns, and a wrong "certain" pays twice: in doubt an error is foreign.
 *
 * An error that has only a `status` is the application's own, as that of http-errors, Boom, Fastify, Hono and Nest is. An SDK whose errors
 * have nothing else (Postmark's) cannot be recognised.
 */

/** Whatever was thrown; everything in it is read with care. */
type ErrorMembers = Readonly<Record<string, unknown>>

/** By what an error shows that it came from elsewhere, and whose errors have it. */
const SIGNS: readonly ((error: ErrorMembers) => boolean)[] = [
  // A received response: axios, got, ky, superagent, ofetch, gaxios (googleapis), Octokit, Azure, SendGrid, graphql-request, request.
  (error) => isObject(error.response) && !isNestException(error),
  // superagent's `response.error`.
  ({ method, path, text }) => [method, path, text].every((part) => typeof part === 'string'),
  // axios without a response, also in old versions.
  ({ isAxiosError }) => isAxiosError === true,
  // Node's own: files, sockets, names, processes.
  ({ syscall }) => typeof syscall === 'string',
  // Koa answers it with 404, whoever has made it.
  ({ code }) => code === 'ENOENT',
  // undici.
  ({ code }) => typeof code === 'string' && code.startsWith('UND_ERR_'),
  // The request that was sent: axios, got and ky without a response, APIMatic (PayPal), openapi-typescript-codegen.
  ({ request }) => isObject(request),
  // A response of axios or Fetch itself, as a cause.
  isReceivedResponse,
  // Headers of Fetch: Stainless (openai, Anthropic), Speakeasy (Mollie). Errors of frameworks have a plain object.
  ({ headers }) => isObject(headers) && typeof headers.get === 'function',
  // Plain headers beside the other service's name for the request: openai 4, Microsoft Graph, AWS 2.
  ({ headers, requestId, requestID, request_id }) =>
    isObject(headers) && (requestId ?? requestID ?? request_id) != null,
  // Stripe.
  (error) => isObject(error.raw) && 'requestId' in error,
  // Fern (Square), Speakeasy.
  ({ rawResponse }) => isObject(rawResponse),
  // AWS 3, and all that Smithy generates.
  ({ $metadata }) => isObject($metadata),
  // Kiota (Microsoft), Adyen.
  ({ responseHeaders, responseBody }) => isObject(responseHeaders) || responseBody !== undefined,
  // Firebase.
  ({ httpResponse }) => isObject(httpResponse),
  // Twilio.
  ({ moreInfo, code }) => typeof moreInfo === 'string' && typeof code === 'number',
  // gRPC.
  ({ metadata, details, code }) => isObject(metadata) && typeof details === 'string' && typeof code === 'number',
  // Elasticsearch and OpenSearch; tRPC's client.
  ({ meta }) => isObject(meta) && ((isObject(meta.headers) && 'statusCode' in meta) || isObject(meta.response)),
  // Hono's HTTPException with a response that was fetched.
  ({ res }) => isReceivedResponse(res),
]

/** A chain without an end is cut: then the error is foreign. */
const MOST_CAUSES = 100

/** Whether an error, or one of its causes, is another service's response or the system's. */
export function isForeignError(thrown: unknown): boolean {
  if (!isObject(thrown)) return false
  try {
    if (isResponse(thrown)) return isReceivedResponse(thrown) // One that the handler has made is its own answer.
    const chain: unknown[] = [thrown]
    const seen = new Set<unknown>()
    for (const error of chain) {
      if (!isObject(error) || seen.has(error)) continue
      if (seen.size === MOST_CAUSES) return true
      seen.add(error)
      if (SIGNS.some((shows) => shows(error))) return true
      chain.push(...listCauses(error))
    }
    return false
  } catch {
    return true // It has getters that throw.
  }
}

/** What an error was made of: `cause`, the parts of an AggregateError, Boom's `data`, and what Nest is to answer. */
function listCauses(error: ErrorMembers): unknown[] {
  const { cause, errors, data, response } = error
  const parts = Array.isArray(errors) ? errors.slice(0, MOST_CAUSES + 1) : []
  const others = [data, response].filter((other) => other instanceof Error || isReceivedResponse(other))
  return [cause, ...parts, ...others]
}

/** Nest's HttpException: its `response` is what the application has it answer. */
function isNestException({ getStatus, getResponse }: ErrorMembers): boolean {
  return typeof getStatus === 'function' && typeof getResponse === 'function'
}

/** A response of Fetch that came from a server, or of axios: those that were made here have no URL, and no request. */
function isReceivedResponse(value: unknown): boolean {
  if (!isObject(value)) return false
  return isResponse(value) ? value.url !== '' : isObject(value.config) && isObject(value.headers)
}

function isResponse(value: unknown): boolean {
  if (!isObject(value)) return false
  const { ok, url, headers } = value
  return typeof ok === 'boolean' && typeof url === 'string' && isObject(headers) && typeof headers.get === 'function'
}

function isObject(value: unknown): value is ErrorMembers {
  return typeof value === 'object' && value !== null
}
