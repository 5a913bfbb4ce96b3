import { sendPayout } from '../payout.js'
import { KEY, type Open } from '../protection.js'

interface Kept {
  readonly status: number
  readonly location: string
  readonly text: string
}

/** The least that any protection in memory needs: one look-up and one set. It protects from nothing but a late retry. */
export const floorMemory: Open = async (work) => {
  const kept = new Map<string, Kept>()
  return {
    handlers: [
      async (req, res) => {
        const key = req.headers[KEY] as string
        const before = kept.get(key)
        if (before !== undefined) {
          res.status(before.status).location(before.location).type('json').send(before.text)
          return
        }
        const payout = await work(req)
        kept.set(key, { status: payout.status, location: payout.location, text: JSON.stringify(payout.body) })
        sendPayout(res, payout)
      },
    ],
  }
}
