import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { BINDINGS } from '../support/bindings.js'
import { createPausedStore } from '../support/paused-store.js'
import { serve } from '../support/serve.js'

// A response that is ended at once is left to Node until it is stored. Until then it must look sent: what the handler, or whoever handles
// its error, does to it must not get into an answer that retries get otherwise.

const LATER: readonly { readonly name: string; readonly change: (res: ServerResponse) => unknown }[] = [
  { name: 'sets another status', change: (res) => Object.assign(res, { statusCode: 500 }) },
  { name: 'sets a status message', change: (res) => Object.assign(res, { statusMessage: 'Later' }) },
  { name: 'ends it again', change: (res) => res.end('{"paid":false}') },
  { name: 'destroys it', change: (res) => res.destroy() },
  { name: 'wraps what writes its head', change: addHeaderLate },
]

function addHeaderLate(res: ServerResponse): void {
  const { writeHead } = res
  res.writeHead = function (this: ServerResponse, ...head: unknown[]) {
    this.setHeader('X-Late', '1')
    return Reflect.apply(writeHead, this, head)
  }
}

describe.each(BINDINGS)('on $name, a handler that has ended its response', (binding) => {
  test.each(LATER)('and $name while it is stored, changes neither the answer nor its replay', async ({ change }) => {
    const { store, completing, stored } = createPausedStore()
    let response: ServerResponse | undefined
    let judged: boolean | undefined
    const isSuccess = () => {
      judged = response?.headersSent
      return true
    }
    const pay = (_req: unknown, res: ServerResponse) => {
      response = res
      res.statusCode = 201
      res.setHeader('Content-Type', 'application/json')
      res.end('{"paid":true}')
    }
    const { port } = await serve(binding, pay, { options: { store, isSuccess } })
    const send = () => fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers: { 'Idempotency-Key': 'a' } })

    const first = send()
    await completing.opened
    expect(judged).toBe(true)
    expect(response).toMatchObject({ headersSent: true, writableEnded: true })
    expect(() => response?.setHeader('X-Late', '1')).toThrow('after they are sent')
    change(response as ServerResponse)
    stored.open()
    for (const answer of [await first, await send()]) {
      expect({ status: answer.status, statusText: answer.statusText }).toEqual({ status: 201, statusText: 'Created' })
      expect(answer.headers.has('X-Late')).toBe(false)
      expect(await answer.json()).toEqual({ paid: true })
    }
  })
})
