import type { ErrorRequestHandler, RequestHandler, Response } from 'express'
import { CertainFailure, IdempotencyError } from 'once-per-key'
import type { Logger } from 'pino'
import { z } from 'zod'

export interface FieldError {
  readonly path: string
  readonly message: string
}

interface Extras {
  readonly errors?: readonly FieldError[]
  readonly headers?: Readonly<Record<string, string>>
}

/** A refusal that the client is told about, in the shape of RFC 9457 that the library's own refusals have too. */
export class ServiceProblem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    readonly detail: string,
    readonly extras: Extras = {},
  ) {
    super(detail)
  }
}

/** 422 and not 409: the two 409s of this service are about idempotency keys, and some clients retry every 409. */
export function ruleBroken(code: string, detail: string): ServiceProblem {
  return new ServiceProblem(422, code, 'The operation is not possible', detail)
}

export function notFound(what: string, id: string): ServiceProblem {
  return new ServiceProblem(404, 'entry_not_found', 'There is no such entry', `There is no ${what} ${id}.`)
}

/** Something outside the body, such as a header, is not as it must be. */
export function notValid(code: string, title: string, { path, message }: FieldError): ServiceProblem {
  return new ServiceProblem(400, code, title, `${path}: ${message}.`, { errors: [{ path, message }] })
}

/** @throws ServiceProblem 400, which names each field that is wrong. */
export function validated<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const result = schema.safeParse(body)
  if (result.success) return result.data
  const errors = result.error.issues.flatMap(fieldErrors)
  const fields = [...new Set(errors.map(({ path }) => path))].slice(0, MAX_ERRORS).join(', ')
  throw new ServiceProblem(400, 'validation_failed', 'The body is not valid', `Please correct: ${fields}.`, {
    errors: errors.slice(0, MAX_ERRORS),
  })
}

const MAX_ERRORS = 20

function fieldErrors(issue: z.core.$ZodIssue): FieldError[] {
  if (issue.code !== 'unrecognized_keys') return [{ path: pathOf(issue.path), message: issue.message }]
  return issue.keys.map((key) => ({ path: pathOf([...issue.path, key]), message: 'Unknown field' }))
}

function pathOf(path: readonly PropertyKey[]): string {
  return path.length === 0 ? 'body' : z.core.toDotPath(path)
}

export const noSuchPath: RequestHandler = (req) => {
  throw new ServiceProblem(404, 'path_not_found', 'Not found', `There is no ${req.path}.`)
}

export function onlyMethods(...methods: readonly string[]): RequestHandler {
  const allow = methods.join(', ')
  return (req) => {
    const detail = `${req.path} takes ${allow}, not ${req.method}.`
    throw new ServiceProblem(405, 'method_not_allowed', 'The method is not allowed', detail, {
      headers: { Allow: allow },
    })
  }
}

/** The last middleware: every error becomes a problem, and only those that are nobody's request are logged. */
export function sendProblems(logger: Logger): ErrorRequestHandler {
  return (thrown, _req, res, next) => {
    if (res.headersSent) return next(thrown)
    const error = thrown instanceof CertainFailure ? thrown.cause : thrown
    const problem = problemOf(error)
    const isDuplicate = error instanceof IdempotencyError && error.code === 'operation_taken' // Its client gets what the record says.
    if (problem !== error && problem.status >= 500 && !isDuplicate) logger.error({ err: error }, 'request failed')
    if (problem.status === 503) logger.warn({ reason: (error as { reason?: unknown }).reason }, problem.code)
    send(res, problem)
  }
}

function problemOf(error: unknown): ServiceProblem {
  if (error instanceof ServiceProblem) return error
  const { type, status, expose } = (error ?? {}) as { type?: unknown; status?: unknown; expose?: unknown }
  switch (type) {
    // The types of express.json().
    case 'entity.parse.failed':
      return bodyNotJson()
    case 'entity.too.large':
      return new ServiceProblem(413, 'body_too_large', 'The body is too large', 'Send at most 100 KiB.')
    case 'charset.unsupported':
    case 'encoding.unsupported':
      return encodingUnsupported()
  }
  // Only of those who read the request: the status of another service's response says nothing of it.
  if (typeof status === 'number' && (expose === true || error instanceof URIError)) {
    return new ServiceProblem(status, 'request_invalid', 'The request is not valid', 'It could not be read.')
  }
  return new ServiceProblem(500, 'internal_error', 'Something went wrong', 'It is our fault, and was logged.')
}

export function bodyNotJson(): ServiceProblem {
  return new ServiceProblem(400, 'body_not_json', 'The body is not JSON', 'Send one JSON object, in UTF-8.')
}

export function encodingUnsupported(): ServiceProblem {
  return unsupportedMediaType('Send JSON in UTF-8, plain or with gzip, deflate or br.')
}

export function unsupportedMediaType(detail: string): ServiceProblem {
  return new ServiceProblem(415, 'media_type_unsupported', 'The content type is not supported', detail)
}

function send(res: Response, { status, code, title, detail, extras }: ServiceProblem): void {
  const type = `urn:payments-example:problem:${code}`
  res.status(status).set({ ...extras.headers, 'Content-Type': 'application/problem+json' })
  const { errors } = extras
  const members = { type, title, status, detail, message: detail, code, ...(errors && { errors }) }
  res.send(Buffer.from(JSON.stringify(members)))
}
