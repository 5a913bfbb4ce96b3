import { payoutHandler } from '../payout.js'
import type { Open } from '../protection.js'

/** Express alone. */
export const bare: Open = async (work) => ({ handlers: [payoutHandler(work)] })

/** Express alone, with the bytes of its first response for each request: nobody can replay with less. */
export const bareBuffer: Open = async (work) => {
  let bytes: Buffer | undefined
  return {
    handlers: [
      async (req, res) => {
        bytes ??= Buffer.from(JSON.stringify((await work(req)).body))
        const headers = { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': bytes.length }
        res.writeHead(201, { ...headers, Location: '/payouts/payout_0000000001' }).end(bytes)
      },
    ],
  }
}
