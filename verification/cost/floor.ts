import type { RequestHandler, Response } from 'express'
import type { Redis } from 'ioredis'

/** What is kept of an answer, and how the client of a repetition gets it. */
interface Kept {
  readonly status: number
  readonly location: string
  readonly contentType: string
  readonly body: string
}

/**
 * The least that protects from a late retry with Redis: one command claims the key or finds its record, and one keeps the
 * answer before it is sent. No lease, no fingerprint, no fence, no time limit.
 */
export function floor(redis: Redis): RequestHandler {
  return (req, res, next) => {
    const key = `by hand:${req.get('Idempotency-Key')}`
    redis.set(key, 'runs', 'PX', 30_000, 'NX', 'GET').then((found) => {
      if (found === null) keepThenSend(redis, key, res, next)
      else if (found === 'runs') res.status(409).end()
      else replay(JSON.parse(found), res)
    }, next)
  }
}

function keepThenSend(redis: Redis, key: string, res: Response, next: (error?: unknown) => void): void {
  const { end } = res
  const send = end as (this: Response, chunk: unknown) => Response
  res.end = ((chunk: unknown) => {
    res.end = end
    const { statusCode: status } = res
    const kept = {
      status,
      location: res.getHeader('Location'),
      contentType: res.getHeader('Content-Type'),
      body: `${chunk}`,
    }
    redis.set(key, JSON.stringify(kept), 'PX', 86_400_000).then(() => send.call(res, chunk), next)
    return res
  }) as typeof end
  next()
}

function replay({ status, location, contentType, body }: Kept, res: Response): void {
  res.statusCode = status
  res.setHeader('Location', location)
  res.setHeader('Content-Type', contentType)
  res.end(body)
}
