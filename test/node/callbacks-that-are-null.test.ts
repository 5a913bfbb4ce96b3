import { describe, expect, test } from 'vitest'
import { BINDINGS } from '../support/bindings.js'
import { request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

// `res.end(body, null, null)`, as Fastify calls it, threw: Node ignores a callback that is no function.
describe.each(BINDINGS)('$name', (binding) => {
  test('an encoding and a callback that are null are none', async () => {
    const { port } = await serve(binding, (_req, res) => {
      res.write('pa', null as never, null as never)
      res.end('id', null as never, null as never)
    })
    expect((await request(port, { key: 'k' })).body.toString()).toBe('paid')
    expect((await request(port, { key: 'k' })).header('Idempotent-Replayed')).toBe('true')
  })
})
