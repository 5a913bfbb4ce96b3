import { isUtf8 } from 'node:buffer'
import express, { type RequestHandler } from 'express'
import { bodyNotJson, encodingUnsupported, unsupportedMediaType } from './problems.js'

/** Mounted before the idempotency middleware, which could not compare a body that nobody parsed. */
export const jsonBody: readonly RequestHandler[] = [
  requireJson,
  express.json({
    limit: '100kb',
    // The parser would read bytes that are not UTF-8 as U+FFFD, and two different bodies would be the same.
    verify(_req, _res, bytes, charset) {
      if (charset !== 'utf-8') throw encodingUnsupported()
      if (!isUtf8(bytes)) throw bodyNotJson()
    },
  }),
]

function requireJson(...[req, _res, next]: Parameters<RequestHandler>): void {
  const isEmpty = req.headers['transfer-encoding'] === undefined && Number(req.headers['content-length'] ?? 0) === 0
  if (!isEmpty && !req.is('application/json')) throw unsupportedMediaType('Send application/json.')
  next()
}
