import { ValidationError } from 'class-validator'
import type { ErrorRequestHandler } from 'express'
import { z } from 'zod'

/**
 * What validators throw names no status: Express would answer 500, after which it counts as unknown whether the operation had
 * its effect, and the corrected request is another one under a used key. A 400 says that it certainly had none.
 */
export const refuseInvalid: ErrorRequestHandler = (error, _req, res, next) => {
  const errors = mistakesIn(error)
  if (errors === undefined || res.headersSent) return next(error)
  res.status(400).json({ errors })
}

function mistakesIn(error: unknown): object | undefined {
  if (error instanceof z.ZodError) return z.flattenError(error).fieldErrors
  // class-validator's validateOrReject rejects with an array.
  if (Array.isArray(error) && error[0] instanceof ValidationError) {
    return Object.fromEntries(error.map(({ property, constraints = {} }) => [property, Object.values(constraints)]))
  }
  return undefined
}
