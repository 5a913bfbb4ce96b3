import type { Request, RequestHandler } from 'express'
import { notValid } from './problems.js'

/** A header of the demo that has one value, or is absent. */
export interface DemoSwitch {
  readonly header: string
  readonly value: string
  /** Of the refusal of any other value. */
  readonly code: string
  readonly title: string
}

export function isOn(req: Request, { header, value }: DemoSwitch): boolean {
  return req.get(header) === value
}

/** Refuses a wrong value before the key is claimed. */
export function checkSwitch({ header, value, code, title }: DemoSwitch): RequestHandler {
  return (req, _res, next) => {
    const given = req.get(header)
    if (given === undefined || given === value) return next()
    throw notValid(code, title, { path: header, message: `Must be ${value}, or absent` })
  }
}
