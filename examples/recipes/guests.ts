import express, { type RequestHandler } from 'express'
import { idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'

interface Shopper {
  readonly accountId?: string
  /** Made by the shop when something is put into the cart, and sent in a signed cookie. */
  readonly cartId?: string
}

const shopperOf = (headers: { readonly [name: string]: string | string[] | undefined }): Shopper => {
  const [kind, id] = String(headers['x-shopper'] ?? '').split(' ') // your session
  return kind === 'account' && id ? { accountId: id } : kind === 'cart' && id ? { cartId: id } : {}
}

/** The prefixes keep a cart from meeting an account of the same name. A cart keeps its scope when its guest signs in. */
function scopeOf({ accountId, cartId }: Shopper): string | undefined {
  if (cartId !== undefined) return `cart:${cartId}`
  return accountId && `account:${accountId}`
}

/** Before the middleware: nobody pays without a cart, so nobody's key is everybody's. */
const needsCart: RequestHandler = (req, res, next) => {
  if (scopeOf(shopperOf(req.headers)) === undefined)
    res.status(401).json({ message: 'Put something into a cart first.' })
  else next()
}

export const app = express()
const once = idempotency({ store: new MemoryStore(), scope: (req) => scopeOf(shopperOf(req.headers)), required: true })

app.post('/checkout', needsCart, express.json(), once, (req, res) => {
  res.status(201).json({ order: req.idempotency?.deriveKey('order'), amount: req.body.amount })
})
