import { createHmac } from 'node:crypto'
import { hmacSha256 } from 'once-per-key/webhooks'
import { expect, test } from 'vitest'
import { BINDINGS, type Step } from '../support/bindings.js'
import { deliver, merchantUpdated, receive } from '../support/deliveries.js'

// Where something before the receiver had set an encoding on the request, its text was taken for UTF-8: with `latin1` a
// good signature was refused, and without one the handler got `Ã©` for `é`.

const [express5] = BINDINGS as [(typeof BINDINGS)[0]]

test.each(['utf8', 'latin1', 'hex', 'base64'] as const)(
  'a body that is read as %s is what was sent',
  async (encoding) => {
    const body = JSON.stringify(merchantUpdated({ payload: { displayName: 'Café ☃' } }))
    const setEncoding: Step = (req, _res, next) => {
      req.setEncoding(encoding)
      next()
    }
    const { port, handled } = await receive(express5, {
      options: { verify: hmacSha256({ header: 'x-signature', secrets: ['secret'] }) },
      before: [setEncoding],
    })
    const headers = { 'X-Signature': createHmac('sha256', 'secret').update(body).digest('hex') }
    expect((await deliver(port, { headers, body })).status).toBe(200)
    expect(handled[0]?.event.payload.displayName).toBe('Café ☃')
  },
)
