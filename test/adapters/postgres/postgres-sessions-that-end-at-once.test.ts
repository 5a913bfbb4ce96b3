import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { PostgresStore } from 'once-per-key/postgres'
import { Pool } from 'pg'
import { expect, onTestFinished, test } from 'vitest'

// A session that the database ended in the moment in which it was opened crashed the process: the pool had taken its listener off
// the connection, and the store did not have it yet.

/** Accepts each session, and ends it in the same packet. */
async function endingServer(): Promise<number> {
  const ended = ['SFATAL', 'C57P01', 'Mterminating connection due to administrator command', '']
  const packet = Buffer.concat([
    message('R', Buffer.alloc(4)),
    message('Z', 'I'),
    message('E', `${ended.join('\0')}\0`),
  ])
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(packet))
  })
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port
}

/** https://www.postgresql.org/docs/current/protocol-message-formats.html */
function message(type: string, content: string | Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeUInt32BE(4 + content.length, 1)
  return Buffer.concat([head, Buffer.from(content)])
}

async function openPool(): Promise<Pool> {
  const pool = new Pool({ host: '127.0.0.1', port: await endingServer(), user: 'u', database: 'd', password: '' })
  pool.on('error', () => {})
  onTestFinished(() => pool.end())
  return pool
}

// An error that nobody listens to fails the run of the tests.
test('a session that ends as it begins fails a command, and not the process', async () => {
  const store = new PostgresStore({ pool: await openPool(), sweeps: false })
  await expect(store.inspect('acme:k')).rejects.toMatchObject({ code: 'connection_lost' })
})
