// Serves the application by the runtime's own server, and prints its port.
import { answer } from './app.mjs'

const failed = () => new Response('failed', { status: 500 })
const hostname = '127.0.0.1'

if (globalThis.Bun) {
  const { port } = Bun.serve({
    hostname,
    port: 0,
    development: false,
    fetch: (request) => answer(request),
    error: failed,
  })
  console.log(port)
} else if (globalThis.Deno) {
  const onListen = ({ port }) => console.log(port)
  Deno.serve({ hostname, port: 0, onListen, onError: failed }, (request) => answer(request))
} else {
  const { createServer } = await import('node:http')
  const { Readable } = await import('node:stream')
  const server = createServer(async (req, res) => {
    const left = new AbortController()
    res.on('close', () => left.abort())
    const body = Readable.toWeb(req)
    const init = { method: req.method, headers: req.headers, body, duplex: 'half', signal: left.signal }
    const { status, headers, body: sent } = await answer(new Request(`http://test${req.url}`, init)).catch(failed)
    res.writeHead(status, [...headers].flat())
    if (sent === null) res.end()
    else
      Readable.fromWeb(sent)
        .on('error', () => res.destroy())
        .pipe(res)
  })
  server.listen(0, hostname, () => console.log(server.address().port))
}
