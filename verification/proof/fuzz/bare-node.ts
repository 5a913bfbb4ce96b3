import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { gate } from '../../../test/support/gate.js'
import { connectTo } from '../../../test/support/raw-client.js'
import { answer, type Situation } from './handlers.js'
import { KINDS, type Kind, type KindName } from './mounts.js'

/** Those of a handler that breaks its response off, and does nothing to the connection itself. */
export const BREAKING_OFF = (Object.keys(KINDS) as KindName[]).filter((name) => {
  const { breaksOff = false, endsConnection = false }: Kind = KINDS[name]
  return breaksOff && !endsConnection
})

/**
 * The kinds of handlers behind which this Node keeps the connection open for good, on a server with nothing of this library, where the
 * response is broken off before its turn on the connection. From version 24 on, Node forgets then that the response was destroyed.
 */
export async function findKindsLeftOpen(): Promise<ReadonlySet<KindName>> {
  const found = await Promise.all(BREAKING_OFF.map(async (kind) => ((await isLeftOpen(kind)) ? [kind] : [])))
  return new Set(found.flat())
}

async function isLeftOpen(kind: KindName): Promise<boolean> {
  const brokenOff = gate()
  let first: ServerResponse | undefined
  const server = createServer((req: IncomingMessage, res) => {
    if (first === undefined) first = res
    else void answer(kind, req, res, () => {}, SITUATION).then(brokenOff.open, brokenOff.open)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = connectTo((server.address() as AddressInfo).port)
  try {
    client.send({ path: '/first' })
    client.send({ path: '/second' })
    await brokenOff.opened
    const before = first as ServerResponse | undefined
    const socket = before?.socket
    before?.end()
    await client.reply().catch(() => {}) // The connection may close just behind it.
    // The second response has its turn: a Node that knows that it was broken off has closed the connection by now.
    await turn()
    return socket?.destroyed === false
  } finally {
    client.socket.destroy()
    server.closeAllConnections()
    server.close()
  }
}

/** Of a run that nobody counts. */
export const SITUATION: Situation = {
  run: { number: 1, ended: () => {} },
  request: 'bare',
  sameness: 'unprotected',
  mayHaveEffect: () => {},
  released: async () => {},
}
