import { expect, test } from 'vitest'
import { BINDINGS } from '../support/bindings.js'
import { begin, receive } from '../support/deliveries.js'
import { gate } from '../support/gate.js'

// `idle()` counted runs, but no delivery on its way to one. Where `verify` or `source` waited for something, such as a key,
// and the client left meanwhile, the server had closed and `idle()` resolved; then the run began, and the application closed
// the store's client under it.

const WAITING = {
  verify: (opened: Promise<void>, asked: () => void) => ({
    verify: async () => {
      asked()
      await opened
      return true
    },
  }),
  source: (opened: Promise<void>, asked: () => void) => ({
    source: async () => {
      asked()
      await opened
      return 'payments'
    },
  }),
}

const CASES = BINDINGS.flatMap((binding) =>
  Object.entries(WAITING).map(([option, make]) => ({ name: binding.name, binding, option, make })),
)

test.each(CASES)('on $name: idle waits for a delivery that waits for $option', async ({ binding, make }) => {
  const waiting = gate()
  const asked = gate()
  const handling = gate()
  const { port, handled, receiver, server } = await receive(binding, {
    options: make(waiting.opened, asked.open),
    handler: () => handling.opened,
  })
  const connection = begin(port)
  await asked.opened
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  connection.socket.destroy()
  await closed
  let idle = false
  const ended = receiver.idle().then(() => {
    idle = true
  })
  await turn()
  expect(idle).toBe(false)
  waiting.open()
  await expect.poll(() => handled.length).toBe(1)
  await turn()
  expect(idle).toBe(false)
  handling.open()
  await ended
  expect(idle).toBe(true)
})

const turn = () => new Promise((resolve) => setImmediate(resolve))
