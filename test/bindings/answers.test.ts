import { describe, expect, test } from 'vitest'
import { BARE, BINDINGS_AND_STACKS } from '../support/bindings.js'
import { connectTo } from '../support/raw-client.js'
import { serve } from '../support/serve.js'
import { ANSWER_STYLES } from './answer-styles.js'
import { essenceOf } from './same-answer.js'

describe.each(BINDINGS_AND_STACKS)('$name', ({ binding, stack }) => {
  const styles = ANSWER_STYLES.filter(
    ({ needsExpress, bareOnly }) => (binding.isExpress || !needsExpress) && (stack === BARE || !bareOnly),
  )

  test.each(styles)('$name: the first answer is the handler’s own, and a retry replays it', async (style) => {
    const { handler, method = 'POST' } = style
    const unprotected = await serve(binding, handler, { stack, isProtected: false })
    const serving = await serve(binding, handler, { stack })
    const sent = { method, key: 'k', headers: { 'Accept-Encoding': 'gzip' } }

    const plain = connectTo(unprotected.port)
    plain.send(sent)
    const own = await plain.reply(method)

    // All on one connection: an answer that is framed wrongly spoils the next.
    const connection = connectTo(serving.port)
    connection.send(sent)
    const first = await connection.reply(method)
    connection.send(sent)
    const replay = await connection.reply(method)
    connection.send(sent)
    const again = await connection.reply(method)

    expect(essenceOf(first)).toEqual(essenceOf(own))
    expect(essenceOf(replay)).toEqual(essenceOf(first))
    expect(essenceOf(again)).toEqual(essenceOf(first))
    expect(first.header('Connection')).toBe(own.header('Connection'))
    for (const { lines } of [first, replay]) {
      expect(lines('Content-Length').length + lines('Transfer-Encoding').length).toBeLessThanOrEqual(1)
    }
    if (method === 'HEAD') expect(replay.lines('Content-Length')).toEqual(own.lines('Content-Length'))
    expect(first.lines('Idempotent-Replayed')).toEqual([])
    expect(replay.lines('Idempotent-Replayed')).toEqual(['true'])
    expect(connection.received()).toHaveLength(0)
    expect(serving.runs()).toBe(1)
  })
})
