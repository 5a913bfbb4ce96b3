import type { RequestHandler } from 'express'
import { ServiceProblem } from './problems.js'

export interface Merchant {
  readonly id: string
  readonly name: string
}

declare global {
  namespace Express {
    interface Request {
      merchant?: Merchant
    }
  }
}

const acme: Merchant = { id: 'mer_acme', name: 'Acme' }
const globex: Merchant = { id: 'mer_globex', name: 'Globex' }

/** Acme is rolling its API key: both are the same account. */
const merchantByApiKey: ReadonlyMap<string, Merchant> = new Map([
  ['demo_acme', acme],
  ['demo_acme_new', acme],
  ['demo_globex', globex],
])

/** Who asks. It comes before the body is read. */
export const authenticate: RequestHandler = (req, _res, next) => {
  const [, apiKey] = /^Bearer +(\S+) *$/i.exec(req.headers.authorization ?? '') ?? []
  const merchant = apiKey === undefined ? undefined : merchantByApiKey.get(apiKey)
  if (merchant === undefined) throw unauthenticated(apiKey !== undefined)
  req.merchant = merchant
  next()
}

/** Of a request that was authenticated. */
export function merchantOf(req: Express.Request): Merchant {
  if (req.merchant === undefined) throw new Error('authenticate must be mounted before this')
  return req.merchant
}

function unauthenticated(isUnknown: boolean): ServiceProblem {
  const detail = isUnknown ? 'The API key is unknown.' : 'Send the header Authorization: Bearer <API key>.'
  // RFC 6750 §3.1: without authentication information, the challenge carries no error code.
  const challenge = `Bearer realm="payments"${isUnknown ? ', error="invalid_token"' : ''}`
  return new ServiceProblem(401, 'unauthenticated', 'Who are you?', detail, {
    headers: { 'WWW-Authenticate': challenge },
  })
}
