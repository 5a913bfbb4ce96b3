import { ValidationError } from 'class-validator'
import type { RequestHandler } from 'express'
import { z } from 'zod'

/**
 * Refuses a body that a validator refuses, before its key is claimed: a corrected body may follow under the same key. What the validator
 * returns is in `res.locals.body`, and `req.body` stays as it was sent, since retries are compared by it.
 */
export function validateBody(validate: (body: unknown) => unknown): RequestHandler {
  return async (req, res, next) => {
    try {
      res.locals.body = await validate(req.body)
    } catch (error) {
      const errors = mistakesIn(error)
      return errors === undefined ? next(error) : void res.status(400).json({ errors })
    }
    next()
  }
}

function mistakesIn(error: unknown): object | undefined {
  if (error instanceof z.ZodError) return z.flattenError(error).fieldErrors
  // class-validator's validateOrReject rejects with an array.
  if (Array.isArray(error) && error[0] instanceof ValidationError) {
    return Object.fromEntries(error.map(({ property, constraints = {} }) => [property, Object.values(constraints)]))
  }
  return undefined
}
