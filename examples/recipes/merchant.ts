import type { RequestHandler } from 'express'

declare global {
  namespace Express {
    interface Request {
      merchantId?: string
    }
  }
}

const merchantByApiKey: ReadonlyMap<string, string> = new Map([
  ['demo_acme', 'mer_acme'],
  ['demo_globex', 'mer_globex'],
])

/** Sets the merchant. Replace it with your application's own authentication. */
export const authenticate: RequestHandler = (req, res, next) => {
  const [, apiKey = ''] = /^Bearer (\S+)$/.exec(req.headers.authorization ?? '') ?? []
  const merchantId = merchantByApiKey.get(apiKey)
  if (merchantId === undefined) {
    res.sendStatus(401)
    return
  }
  req.merchantId = merchantId
  next()
}
