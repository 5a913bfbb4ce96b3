import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import express, { type Request } from 'express'

/** How a service can get idempotency keys wrong. */
type Flaw =
  | 'none'
  | 'runs every request'
  | 'forgets the merchant of a key'
  | 'answers a repeat anew'
  | 'carries out other bodies'
  | 'ignores bodies'
  | 'never carries anything out'

interface Kept {
  readonly body: string
  readonly answer: Promise<object>
}

/** As much of the payments example as the bad network asks of it, in a few lines of its own, with one flaw. */
export async function startBrokenPayments(flaw: Flaw, atEnd: (end: () => void) => void): Promise<string> {
  const kept = new Map<string, Kept>()
  const runs = new Map<string, number>()
  const merchantOf = (req: Request) => `${req.get('authorization')}`

  async function carryOut(req: Request): Promise<object> {
    await setTimeout(Number(req.get('x-demo-delay-ms') ?? 0))
    const name = `${merchantOf(req)} ${req.get('x-demo-operation')}`
    if (flaw !== 'never carries anything out') runs.set(name, (runs.get(name) ?? 0) + 1)
    return { id: randomUUID() }
  }

  const app = express()
  app.get('/health', (_req, res) => void res.json({ status: 'ok' }))
  app.get('/demo/operations/:name', (req, res) => {
    const { name } = req.params
    res.json({ name, runs: runs.get(`${merchantOf(req)} ${name}`) ?? 0 })
  })
  app.post('/api/service/*path', express.text({ type: 'application/json' }), async (req, res) => {
    const owner = flaw === 'forgets the merchant of a key' ? '' : merchantOf(req)
    const key = `${owner} ${flaw === 'runs every request' ? randomUUID() : req.get('idempotency-key')}`
    const body = flaw === 'ignores bodies' ? '' : `${req.body}`
    const earlier = kept.get(key)
    if (earlier !== undefined && earlier.body !== body && flaw !== 'carries out other bodies') {
      return void res.status(409).set('X-Should-Retry', 'false').json({ code: 'mismatched' })
    }
    if (earlier?.body === body) {
      const answer = await earlier.answer
      return void res.status(201).json(flaw === 'answers a repeat anew' ? { ...answer, at: Math.random() } : answer)
    }
    const answer = carryOut(req)
    kept.set(key, { body, answer })
    await answer
    if (req.get('x-demo-crash') === undefined) res.status(201).json(await answer)
  })

  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
