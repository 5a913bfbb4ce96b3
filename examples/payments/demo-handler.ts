import type { Request } from 'express'
import { checkSwitch, choiceOf, type DemoSwitch } from './demo-switch.js'

const HANDLER: DemoSwitch<'naive'> = {
  header: 'x-demo-handler',
  values: ['naive'],
  code: 'handler_invalid',
  title: 'The demo handler is not valid',
}

export const checkDemoHandler = checkSwitch(HANDLER)

/**
 * Whether the handler of this request relies on its key alone: it asks for no `deriveKey`, does not look in its books for what an
 * earlier attempt did, and does not commit its effect with the record. That is the application's work; without it, the demo
 * shows what the library does.
 */
export function isNaive(req: Request): boolean {
  return choiceOf(req, HANDLER) === 'naive'
}
