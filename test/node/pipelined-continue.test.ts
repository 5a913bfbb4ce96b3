import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { idempotency, singleTenant } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { gate } from '../support/gate.js'

// Node lets a `100 Continue` in between head and bytes of a response that ended with a Buffer before the one in front of it:
// the client took the interim response for the answer's body, and the rest for the next answer.
test.each([5, 100_000])(
  'an answer of %i bytes behind another, to a request that expects 100 Continue',
  async (length) => {
    const protect = idempotency({ store: new MemoryStore(), scope: singleTenant })
    const second = gate()
    const server = createServer((req: IncomingMessage, res: ServerResponse) => {
      protect(req, res, () => {
        const end = () => void res.end(Buffer.alloc(length, 'x'))
        if (req.url === '/first') return void second.opened.then(end)
        second.open()
        end()
      })
    }).listen(0)
    const socket = connect((server.address() as AddressInfo).port)
    const request = (path: string, header = '') =>
      `POST ${path} HTTP/1.1\r\nHost: a\r\nIdempotency-Key: ${path}\r\n${header}Content-Length: 0\r\n\r\n`
    socket.write(request('/first') + request('/second', 'Expect: 100-continue\r\nConnection: close\r\n'))
    let seen = ''
    socket.on('data', (bytes: Buffer) => {
      seen += bytes.toString('latin1')
    })
    await once(socket, 'close')
    server.close()

    const heads = [...seen.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
    expect(heads).toEqual(['200', '100', '200'])
    expect(seen.endsWith(`\r\n\r\n${'x'.repeat(length)}`)).toBe(true)
  },
)
