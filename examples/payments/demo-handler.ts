import type { Request, RequestHandler } from 'express'
import { checkSwitch, choiceOf, type DemoSwitch } from './demo-switch.js'
import type { Ledger } from './ledger.js'
import type { Operation } from './operation.js'
import { createOrder } from './operations/order.js'

const HANDLER: DemoSwitch<'naive' | 'in-transaction' | 'steps'> = {
  header: 'x-demo-handler',
  values: ['naive', 'in-transaction', 'steps'],
  code: 'handler_invalid',
  title: 'The demo handler is not valid',
}

/** Refuses a handler that this operation does not have, or not on these books. */
export function checkDemoHandler(operation: Operation, { withRecord }: Ledger): RequestHandler {
  const values = HANDLER.values.filter((value) => {
    if (value === 'in-transaction') return withRecord !== undefined
    return value !== 'steps' || operation.path === createOrder.path
  })
  return checkSwitch({ ...HANDLER, values })
}

/**
 * Whether the handler of this request relies on its key alone: it asks for no `deriveKey`, does not look in its books for what an
 * earlier attempt did, and does not commit its effect with the record. That is the application's work; without it, the demo
 * shows what the library does.
 */
export function isNaive(req: Request): boolean {
  return choiceOf(req, HANDLER) === 'naive'
}

/** Whether all that this request does is one transaction, and its key is not claimed before. */
export function isOneTransaction(req: Request): boolean {
  return choiceOf(req, HANDLER) === 'in-transaction'
}

/** Whether the order of this request is made in three steps. */
export function isInSteps(req: Request): boolean {
  return choiceOf(req, HANDLER) === 'steps'
}
