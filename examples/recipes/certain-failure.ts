import type { RequestHandler } from 'express'
import { CertainFailure, contextOf } from 'once-per-key'

export interface Bank {
  /** Rejects with `Declined` if no money moved; after any other error it may have. */
  transfer(amount: number, idempotencyKey: string): Promise<{ readonly id: string }>
}

export class Declined extends Error {}

/** A payment that the bank declined frees its key for a corrected request. */
export function pay(bank: Bank): RequestHandler {
  return async (req, res) => {
    try {
      res.status(201).json(await bank.transfer(req.body.amount, contextOf(req).deriveKey('bank transfer')))
    } catch (error) {
      if (!(error instanceof Declined)) throw error // the outcome is unknown
      throw new CertainFailure('The bank has declined the payment.', { status: 402, cause: error })
    }
  }
}
