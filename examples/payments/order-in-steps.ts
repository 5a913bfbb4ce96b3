import type { RequestHandler } from 'express'
import { die, isToCrash } from './demo-crash.js'
import { demoDelay } from './demo-delay.js'
import { countRun } from './demo-operation.js'
import { certainWhereItIs, type Ledger, newId } from './ledger.js'
import { madeOnce } from './made-once.js'
import { merchantOf } from './merchants.js'
import type { Context } from './operation.js'
import { createOrder } from './operations/order.js'
import { notValid, validated } from './problems.js'

/**
 * An order that is charged, shipped and told by mail: three effects that could not be one transaction. Each is a step, whose
 * result is recorded by itself: the retry after a crash goes on after the steps that were done.
 */
export function orderInSteps(ledger: Ledger): RequestHandler {
  return async (req, res) => {
    const run = req.idempotency
    if (run === undefined) throw keyMissing()
    await demoDelay(req)
    const input = validated(createOrder.schema, req.body)

    /** Whoever dies after an effect has not recorded its step: the other side knows the repeat by the step's key. */
    function effect<Result extends object>(key: string, make: (context: Context) => Promise<Result>): Promise<Result> {
      return ledger
        .transaction(merchantOf(req).id, (books) => {
          const context = { books, now: new Date() }
          return madeOnce(context, key, () => make(context))
        })
        .catch(certainWhereItIs)
    }

    let isResumed = true
    const order = await run.step('charge', ({ key }) => {
      isResumed = false
      return effect(key, async (context) => {
        await countRun(req, context)
        return createOrder.run(input, context)
      })
    })
    if (isToCrash(req)) return die(req, res)
    const parcel = await run.step('ship', ({ key }) => effect(key, async () => ({ id: newId('par') })))
    const mail = await run.step('mail', ({ key }) => effect(key, async () => ({ id: newId('mail') })))

    if (isResumed) res.set('x-demo-outcome', 'resumed')
    res.status(createOrder.status).json({ ...order, parcelId: parcel.id, mailId: mail.id })
  }
}

function keyMissing(): Error {
  const message = 'Steps are recorded under a key: send an Idempotency-Key'
  return notValid('key_missing', 'The key is missing', { path: 'x-demo-handler', message })
}
