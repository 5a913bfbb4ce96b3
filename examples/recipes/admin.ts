import { createHash, timingSafeEqual } from 'node:crypto'
import { json, type RequestHandler, Router } from 'express'
import type { Operator, UnknownOutcome } from 'once-per-key/http'

const MOST_SHOWN = 100

/** For operators alone: `app.use('/admin/payments', unknownOutcomes(once, token))`, before anything that clients reach. */
export function unknownOutcomes(once: Operator, token: string): Router {
  const router = Router().use(operatorsOnly(token))

  router.get('/unknown', async (_req, res) => {
    const found: UnknownOutcome[] = []
    for await (const each of once.unknown()) if (found.push(each) === MOST_SHOWN) break
    found.sort((a, b) => a.retentionRemainingMs - b.retentionRemainingMs) // the oldest first
    res.json(found.map(({ record, ...name }) => ({ ...name, state: record.state, attempt: record.attempt })))
  })

  router.post('/resolve', json(), async (req, res) => {
    const { namespace, scope, key, attempt, outcome } = req.body // `outcome`: 'failed', or { completed: { status, body } }
    const resolved = await once.resolve({ namespace, scope, key, attempt }, outcome)
    res
      .status(resolved.ok ? 200 : 409)
      .json(resolved.ok ? { settled: true } : { nowIs: resolved.record?.state ?? 'gone' })
  })

  return router
}

/** Or whatever your staff signs in with. Digests, so that neither length nor time tells anything of the token. */
function operatorsOnly(token: string): RequestHandler {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return (req, res, next) => {
    const isOperator = timingSafeEqual(digest(req.get('authorization') ?? ''), digest(`Bearer ${token}`))
    if (isOperator) next()
    else res.status(401).set('WWW-Authenticate', 'Bearer').end()
  }
}
