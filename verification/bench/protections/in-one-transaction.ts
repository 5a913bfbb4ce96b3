import { type Payout, sendPayout } from '../payout.js'
import { type Ground, KEY, type Open } from '../protection.js'

/** What a database's client does for a payout, and to protect it by hand. */
export interface ByHand<Tx> {
  inTransaction<Value>(work: (tx: Tx) => Promise<Value>): Promise<Value>
  insert(tx: Tx, payout: Payout): Promise<unknown>
  /** Returns whether the key was free. */
  claim(tx: Tx, key: string): Promise<boolean>
  complete(tx: Tx, key: string, payout: Payout): Promise<unknown>
  /** `undefined`: it is in flight. */
  answerOf(tx: Tx, key: string): Promise<Payout | undefined>
  close(): Promise<unknown>
}

type OpenByHand<Tx> = (ground: Ground) => Promise<ByHand<Tx>>

/** A transaction that writes the payout, and no protection. */
export function plain<Tx>(open: OpenByHand<Tx>): Open {
  return async (work, ground) => {
    const { inTransaction, insert, close } = await open(ground)
    return {
      handlers: [
        async (req, res) => {
          const payout = await work(req)
          await inTransaction((tx) => insert(tx, payout))
          sendPayout(res, payout)
        },
      ],
      close,
    }
  }
}

/** Two statements by hand, in the transaction of the payout. A request whose key is in flight waits for it. */
export function floorInside<Tx>(open: OpenByHand<Tx>): Open {
  return async (work, ground) => {
    const { inTransaction, insert, claim, complete, answerOf, close } = await open(ground)
    return {
      handlers: [
        async (req, res) => {
          const key = req.headers[KEY] as string
          const payout = await inTransaction(async (tx) => {
            if (!(await claim(tx, key))) return answerOf(tx, key)
            const paid = await work(req)
            await insert(tx, paid)
            await complete(tx, key, paid)
            return paid
          })
          sendPayout(res, payout ?? IN_FLIGHT)
        },
      ],
      close,
    }
  }
}

export const IN_FLIGHT: Payout = { status: 409, location: '/', body: { error: 'in flight' } }
