import type { Request, RequestHandler } from 'express'
import { notValid } from './problems.js'

/** A header of the demo that has one of some values, or is absent. */
export interface DemoSwitch<Value extends string = string> {
  readonly header: string
  readonly values: readonly Value[]
  /** Of the refusal of any other value. */
  readonly code: string
  readonly title: string
}

/** The value that a request has; one that was checked. */
export function choiceOf<Value extends string>(req: Request, { header, values }: DemoSwitch<Value>): Value | undefined {
  return values.find((value) => value === req.get(header))
}

/** Refuses a wrong value before the key is claimed. */
export function checkSwitch({ header, values, code, title }: DemoSwitch): RequestHandler {
  return (req, _res, next) => {
    const given = req.get(header)
    if (given === undefined || values.includes(given)) return next()
    throw notValid(code, title, { path: header, message: `Must be ${values.join(' or ')}, or absent` })
  }
}
