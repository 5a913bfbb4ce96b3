import { once as onceEmitted } from 'node:events'
import { describe, expect, test } from 'vitest'
import { BINDINGS, FULL, type Step } from '../support/bindings.js'
import { gate } from '../support/gate.js'
import { connectTo, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

/** What a handler's response tells it, or does to it, at each step: compared with Node's own. */
interface Script {
  readonly name: string
  // biome-ignore lint/suspicious/noExplicitAny: a handler's view
  readonly play: (res: any, note: (what: unknown) => void) => unknown
}

const codeOf = (action: () => unknown): unknown => {
  try {
    action()
    return 'done'
  } catch (error) {
    return (error as { code?: string }).code
  }
}

const SCRIPTS: readonly Script[] = [
  {
    name: 'before and after the first write',
    play(res, note) {
      note([res.headersSent, res.writableEnded, res.destroyed, res.closed])
      note(res.write('a'))
      note([res.headersSent, res.writableEnded, res.destroyed, res.closed])
      note(codeOf(() => res.setHeader('X-Late', '1')))
      note(codeOf(() => res.appendHeader('X-Late', '1')))
      note(codeOf(() => res.removeHeader('X-Early')))
      note(codeOf(() => res.writeHead(500)))
      note(codeOf(() => res.writeHead(200, { 'X-Late': '1' })))
      note(res.end('b') === res)
      note([res.headersSent, res.writableEnded])
    },
  },
  {
    name: 'after writeHead',
    play(res, note) {
      note(res.writeHead(201, { 'X-Early': '1' }) === res)
      note([res.headersSent, res.statusCode, res.writableEnded])
      note(codeOf(() => res.setHeader('X-Late', '1')))
      note(codeOf(() => res.writeHead(202)))
      res.end()
    },
  },
  {
    name: 'with what cannot be sent',
    play(res, note) {
      note(codeOf(() => res.writeHead(42)))
      note(codeOf(() => res.writeHead(1000)))
      note(codeOf(() => res.writeHead(200, 'broken\nline')))
      note(res.statusMessage)
      note(codeOf(() => res.writeHead(200, { 'X-Bad': 'broken\nline' })))
      note(codeOf(() => res.write(17)))
      note(codeOf(() => res.end({})))
      note(res.headersSent)
      res.statusMessage = 'Fine'
      res.end('fine')
    },
  },
  {
    name: 'with a second end',
    play(res, note) {
      res.end('once')
      note(codeOf(() => res.end()))
      note(codeOf(() => res.end(() => {})))
      note(res.writableEnded)
    },
  },
  {
    name: 'with destroy',
    play(res, note) {
      res.write('half')
      note(res.destroy() === res)
      note(res.destroyed)
      note(res.write('late'))
    },
  },
  {
    name: 'with the callbacks of an end, and of one that comes later',
    async play(res, note) {
      const early = new Promise((resolve) => res.end('paid', resolve))
      const second = new Promise((resolve) => res.end(resolve))
      await early
      note('first')
      await second
      note('second')
      note(await new Promise((resolve) => res.end((error?: { code: string }) => resolve(error?.code))))
      note(res.writableFinished)
    },
  },
  {
    name: 'with its events',
    async play(res, note) {
      const finish = onceEmitted(res, 'finish')
      const close = onceEmitted(res, 'close')
      res.end('paid')
      await finish
      note('finish')
      await close
      note(['close', res.writableEnded, res.writableFinished, res.closed, res.destroyed])
    },
  },
]

describe.each(BINDINGS)('$name', (binding) => {
  test.each(SCRIPTS)('a handler sees of a held response what it sees of Node’s own: $name', async ({ play }) => {
    const notesOf = async (isProtected: boolean): Promise<unknown[]> => {
      const notes: unknown[] = []
      const over = gate()
      const handler: Step = async (_req, res) => {
        await play(res, (what) => notes.push(what))
        over.open()
      }
      const serving = await serve(binding, handler, { isProtected })
      await request(serving.port, { key: 'k' }).catch(() => {})
      await over.opened
      return notes
    }
    expect(await notesOf(true)).toEqual(await notesOf(false))
  })

  test('a second end while the answer is on its way through other middleware is silent', async () => {
    const late = gate()
    const serving = await serve(
      binding,
      (_req, res) => {
        res.end('paid')
        setImmediate(() => {
          res.end('twice')
          late.open()
        })
      },
      { stack: FULL }, // express-session ends the response when its session is saved.
    )
    expect((await request(serving.port, { key: 'k' })).body.toString()).toBe('paid')
    await late.opened
    expect((await request(serving.port, { key: 'k' })).body.toString()).toBe('paid')
  })

  test('a write after the end is refused, and neither the answer nor the process suffers', async () => {
    const refused = gate<string | undefined>()
    const serving = await serve(binding, (_req, res) => {
      res.end('paid')
      const flows = res.write(' twice', (error?: { code: string }) => refused.open(error?.code))
      expect(flows).toBe(false)
    })
    expect((await request(serving.port, { key: 'k' })).body.toString()).toBe('paid')
    expect(await refused.opened).toBe('ERR_STREAM_WRITE_AFTER_END')
    expect((await request(serving.port, { key: 'k' })).body.toString()).toBe('paid')
  })

  test('a buffer that is used again after a write does not change the answer', async () => {
    const serving = await serve(binding, (_req, res) => {
      const buffer = Buffer.from('first ')
      res.write(buffer)
      buffer.write('second')
      res.write(buffer)
      res.end()
      buffer.fill(0)
    })
    expect((await request(serving.port, { key: 'k' })).body.toString()).toBe('first second')
    expect((await request(serving.port, { key: 'k' })).body.toString()).toBe('first second')
  })

  test('pairs in writeHead are headers, and may repeat a name', async () => {
    const serving = await serve(binding, (_req, res) => {
      res.setHeader('Link', '<replaced>')
      const pairs = [
        ['Link', '</a>'],
        ['Link', '</b>'],
        ['X-Amount', 12],
      ]
      res.writeHead(200, pairs).end('linked')
    })
    for (let i = 0; i < 2; i++) {
      const reply = await request(serving.port, { key: 'k' })
      expect(reply.lines('Link')).toEqual(['</a>', '</b>'])
      expect(reply.lines('X-Amount')).toEqual(['12'])
    }
  })

  test('no byte is sent before the store confirmed the answer', async () => {
    const { MemoryStore } = await import('once-per-key/memory')
    const store = new MemoryStore()
    const complete = store.complete.bind(store)
    const asked = gate()
    const confirm = gate()
    store.complete = async (...args) => {
      asked.open()
      await confirm.opened
      return complete(...args)
    }
    const serving = await serve(binding, (_req, res) => res.end('paid'), { stack: FULL, options: { store } })
    const client = connectTo(serving.port)
    client.send({ key: 'k' })
    await asked.opened
    expect((await request(serving.port, { key: 'k' })).json()).toMatchObject({ code: 'in_flight' })
    expect(client.received()).toHaveLength(0)
    confirm.open()
    expect((await client.reply()).body.toString()).toBe('paid')
  })
})
