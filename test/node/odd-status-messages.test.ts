import { describe, expect, test } from 'vitest'
import { BINDINGS } from '../support/bindings.js'
import { request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

// Node sends whatever a handler sets as `res.statusMessage`, as text. What was no string reached the store: the memory store
// threw, and had dropped the claim by then, so that a retry ran again; node-redis refused the command. And one that was set
// behind the end was sent with the first answer, or threw when that was sent.

const [express5] = BINDINGS as [(typeof BINDINGS)[0]]

describe.each([
  { given: 7, sent: '7' },
  { given: true, sent: 'true' },
  { given: ['Paid'], sent: 'Paid' },
  { given: new RangeError('paid'), sent: 'RangeError: paid' },
  { given: null, sent: 'Created' },
  { given: 0, sent: 'Created' },
  { given: '', sent: 'Created' },
])('the status message $given', ({ given, sent }) => {
  test(`is sent and replayed as "${sent}"`, async () => {
    const { port, runs, events } = await serve(express5, (_req, res) => {
      res.statusCode = 201
      res.statusMessage = given as never
      res.end('paid')
    })
    const replies = [await request(port, { key: 'k' }), await request(port, { key: 'k' })]
    expect(replies.map(({ status, statusMessage }) => [status, statusMessage])).toEqual([
      [201, sent],
      [201, sent],
    ])
    expect([runs(), events.map(({ type }) => type)]).toEqual([1, ['claimed', 'completed', 'replayed']])
  })
})

test.each(['Late', 'für später €'])('the status message %j, set behind the end, changes nothing', async (late) => {
  const { port, events } = await serve(express5, (_req, res) => {
    res.statusCode = 201
    res.end('paid')
    res.statusMessage = late
  })
  for (const reply of [await request(port, { key: 'k' }), await request(port, { key: 'k' })]) {
    expect([reply.status, reply.statusMessage, reply.body.toString()]).toEqual([201, 'Created', 'paid'])
  }
  expect(events.map(({ type }) => type)).toEqual(['claimed', 'completed', 'replayed'])
})
