import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { BINDINGS, type Step } from '../support/bindings.js'
import { connectTo, type RawReply } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

// What is not ASCII in a head is sent as the text behind it is encoded, or as Latin-1, and `Content-Disposition` is re-read
// where a length is known. The first answer, and its replay, were begun otherwise than their handler had begun them: so the
// bytes of their headers differed, from the handler's and from each other's. An empty reason phrase became `OK`.

interface Beginning {
  readonly name: string
  // biome-ignore lint/suspicious/noExplicitAny: a handler's view
  readonly begin: (res: any) => unknown
  /** How long its body is, if not 4. */
  readonly bytes?: number
  readonly method?: 'HEAD'
  readonly version?: '1.0'
}

const BEGINNINGS: readonly Beginning[] = [
  { name: 'an end with text', begin: (res) => res.end('für') },
  { name: 'an end with text, as Latin-1', bytes: 3, begin: (res) => res.end('für', 'latin1') },
  { name: 'an end with text, as utf-8', begin: (res) => res.end('für', 'utf-8') },
  { name: 'an end with text, in hex', bytes: 2, begin: (res) => res.end('00ff', 'hex') },
  { name: 'an end with bytes', begin: (res) => res.end(Buffer.from('für')) },
  { name: 'an end with nothing', bytes: 0, begin: (res) => res.end() },
  { name: 'an end with an empty text', bytes: 0, begin: (res) => res.end('') },
  { name: 'a write of text', begin: (res) => res.write('für') && res.end() },
  { name: 'a write of bytes', begin: (res) => res.write(Buffer.from('für')) && res.end() },
  { name: 'a write of an empty text', begin: (res) => res.write('') && res.end('für') },
  { name: 'an announced length and text', begin: (res) => res.setHeader('Content-Length', 4).end('für') },
  {
    name: 'an announced length and a write',
    begin: (res) => res.setHeader('Content-Length', 4).write('für') && res.end(),
  },
  { name: 'a head and text', begin: (res) => res.writeHead(201).end('für') },
  { name: 'a head with a reason, and text', begin: (res) => res.writeHead(201, 'Größe').end('für') },
  {
    name: 'a head with a reason and a length',
    begin: (res) => res.writeHead(201, 'Größe', { 'Content-Length': 4 }).end('für'),
  },
  { name: 'a head with an empty reason', begin: (res) => res.writeHead(201, '').end('für') },
  { name: 'an empty reason that is set', begin: (res) => Object.assign(res, { statusMessage: '' }).end('für') },
  { name: 'a reason that is set, and text', begin: (res) => Object.assign(res, { statusMessage: 'Größe' }).end('für') },
  { name: 'a head without a body', bytes: 0, begin: (res) => res.writeHead(204, { 'X-More': 'Zoë' }).end() },
  { name: 'HEAD', method: 'HEAD', begin: (res) => res.setHeader('Content-Length', 4).end('für') },
  { name: 'HTTP/1.0, and a write of text', version: '1.0', begin: (res) => res.write('für') && res.end() },
]

const HEADERS: readonly { readonly name: string; readonly headers: Record<string, string | string[]> }[] = [
  { name: 'Latin-1', headers: { 'X-Name': 'Zoë £' } },
  { name: 'several lines', headers: { 'X-Name': ['Zoë', 'plain', 'Größe'] } },
  { name: 'a Content-Disposition in Latin-1', headers: { 'Content-Disposition': 'attachment; filename="Zoë.pdf"' } },
  {
    name: 'a Content-Disposition in UTF-8',
    headers: { 'Content-Disposition': Buffer.from('attachment; filename="Zoë €.pdf"').toString('latin1') },
  },
  {
    name: 'a length before a Content-Disposition',
    headers: { 'Content-Length': '4', 'Content-Disposition': 'attachment; filename="Zoë.pdf"' },
  },
  { name: 'plain ASCII', headers: { 'X-Name': 'Zoe' } },
]

const COMPARED = new Set(['x-name', 'x-more', 'content-disposition'])

function bytesOf({ status, statusMessage, headers }: RawReply): unknown {
  return [status, statusMessage, headers.filter(([name]) => COMPARED.has(name.toLowerCase()))]
}

// Express's own part in a head is the same in both of its versions, and in none of it is Connect's.
describe.each(BINDINGS.filter(({ name }) => name === 'Express 5' || name === 'node:http'))('$name', (binding) => {
  describe.each(HEADERS)('$name', ({ headers }) => {
    const fitting = BEGINNINGS.filter(({ bytes = 4 }) => bytes === 4 || headers['Content-Length'] === undefined)

    test.each(fitting)('before $name: first answer and replay have the bytes of an unprotected one', async (style) => {
      const { begin, method = 'POST', version = '1.1' } = style
      const handler: Step = (_req, res) => {
        for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
        begin(res)
      }
      const replies: RawReply[] = []
      const [plain, serving] = [await serve(binding, handler, { isProtected: false }), await serve(binding, handler)]
      for (const { port } of [plain, serving, serving]) {
        const client = connectTo(port)
        client.send({ key: 'k', method, version })
        replies.push(await client.reply(method))
        client.socket.destroy()
      }
      const [own, first, replay] = replies as [RawReply, RawReply, RawReply]
      expect(bytesOf(first)).toEqual(bytesOf(own))
      expect(bytesOf(replay)).toEqual(bytesOf(own))
      expect(first.body).toEqual(own.body)
      expect(replay.body).toEqual(own.body)
      expect(serving.runs()).toBe(1)
    })

    test('a stream’s head has the bytes of an unprotected one', async () => {
      for (const begin of [(res: ServerResponse) => res.flushHeaders(), (res: ServerResponse) => res.write('für')]) {
        const handler: Step = (_req, res) => {
          for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
          begin(res)
          setImmediate(() => res.end())
        }
        const replies: RawReply[] = []
        for (const isProtected of [false, true]) {
          const { port } = await serve(binding, handler, { isProtected, options: { maxAnswerBytes: 0 } })
          const client = connectTo(port)
          client.send({ key: 'k' })
          await client.firstByte
          if (headers['Content-Length'] !== undefined) await new Promise((resolve) => setImmediate(resolve))
          const head = client.received()
          replies.push(headOf(head))
          client.socket.destroy()
        }
        expect(bytesOf(replies[1] as RawReply)).toEqual(bytesOf(replies[0] as RawReply))
      }
    })
  })

  test('an answer whose transfer coding changes its content is not kept', async () => {
    const handler: Step = (_req, res) => {
      res.setHeader('Transfer-Encoding', 'gzip, chunked')
      res.end(Buffer.from('1f8b', 'hex'))
    }
    const { port } = await serve(binding, handler)
    const client = connectTo(port)
    client.send({ key: 'k' })
    await client.firstByte
    client.socket.destroy()
    const again = connectTo(port)
    again.send({ key: 'k' })
    expect((await again.reply()).json()).toMatchObject({ code: 'answer_not_kept' })
  })

  test('what stands for a head that was handed over never reaches the wire', async () => {
    const handler: Step = (_req, res) => {
      res.writeHead(201)
      res._send('')
      res.end('paid')
    }
    const { port } = await serve(binding, handler)
    const client = connectTo(port)
    for (let i = 0; i < 2; i++) {
      client.send({ key: 'k' })
      const reply = await client.reply()
      expect([reply.status, reply.statusMessage, reply.body.toString()]).toEqual([201, 'Created', 'paid'])
    }
  })
})

/** The head alone: of what comes behind it, not all has to be there. */
function headOf(bytes: Buffer): RawReply {
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, bytes.indexOf('\r\n\r\n')).split('\r\n')
  const headers = lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)] as const)
  return { status: Number(statusLine.slice(9, 12)), statusMessage: statusLine.slice(13), headers } as never
}
