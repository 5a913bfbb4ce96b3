import { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { expect, test } from 'vitest'
import { BINDINGS } from '../support/bindings.js'
import { connectTo, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

// A client that stays, and reads no more, stops a streamed answer. The server's own time limit for idle connections ends that.

const MANY = 200
const PIECE = Buffer.alloc(2 ** 17)

test.each(BINDINGS)(
  '$name: once the server closes an idle connection, the handler goes on to its end',
  async (binding) => {
    const serving = await serve(
      binding,
      async (_req, res) => {
        await pipeline(Readable.from(Array(MANY).fill(PIECE)), res)
      },
      { options: { maxAnswerBytes: 1_024 } },
    )
    serving.server.setTimeout(100)
    const client = connectTo(serving.port)
    client.send({ key: 'k' })
    await client.firstByte
    client.socket.pause()
    await serving.seen('completed')
    await serving.once.idle()
    expect((await request(serving.port, { key: 'k' })).json()).toMatchObject({ code: 'answer_not_kept' })
    client.socket.destroy()
  },
)
