import express, { type RequestHandler } from 'express'
import { unsupportedMediaType } from './problems.js'

/** Mounted before the idempotency middleware, which could not compare a body that nobody parsed. */
export const jsonBody: readonly RequestHandler[] = [requireJson, express.json({ limit: '100kb' })]

function requireJson(...[req, _res, next]: Parameters<RequestHandler>): void {
  const isEmpty = req.headers['transfer-encoding'] === undefined && Number(req.headers['content-length'] ?? 0) === 0
  if (!isEmpty && !req.is('application/json')) throw unsupportedMediaType('Send application/json.')
  next()
}
