import { CertainFailure } from 'once-per-key'
import { describe, expect, test } from 'vitest'
import type { Handler, Reply } from './framework.js'
import { FRAMEWORKS } from './frameworks/index.js'
import { serve } from './serve.js'

interface Failure {
  readonly name: string
  readonly fail: Handler
  /** Certainly without effect: a corrected request may follow. */
  readonly isCertain: boolean
  readonly onError?: (error: unknown) => Reply
  readonly status: number
  readonly throwsCertainly?: true
}

const throws = (error: unknown): Handler => {
  return () => {
    throw error
  }
}
const answersWith = (status: number) => () => ({ status, text: 'no' })

const FAILURES: readonly Failure[] = [
  { name: 'an answer of 422', fail: answersWith(422), status: 422, isCertain: true },
  { name: 'an answer of 408', fail: answersWith(408), status: 408, isCertain: false },
  { name: 'an answer of 503', fail: answersWith(503), status: 503, isCertain: false },
  {
    name: 'a redirect that asks for the same request again (307)',
    fail: () => ({ status: 307, redirect: 'http://test/elsewhere' }),
    status: 307,
    isCertain: false,
  },
  { name: 'a throw', fail: throws(new Error('no money')), status: 500, isCertain: false },
  {
    name: 'a rejection',
    fail: async () => Promise.reject(new Error('no money')),
    status: 500,
    isCertain: false,
  },
  {
    name: 'a throw that the application answers with 500',
    fail: throws(new Error('no money')),
    onError: answersWith(500),
    status: 500,
    isCertain: false,
  },
  {
    name: 'a throw that the application answers with 409',
    fail: throws(new Error('no money')),
    onError: answersWith(409),
    status: 409,
    isCertain: true,
  },
  {
    name: 'a CertainFailure that the application answers with 500',
    throwsCertainly: true,
    fail: throws(new CertainFailure('The quote has expired.')),
    onError: answersWith(500),
    status: 500,
    isCertain: true,
  },
]

describe.each(FRAMEWORKS)('$name', (framework) => {
  const applies = ({ onError, throwsCertainly }: Failure) =>
    !(onError && framework.hasNoErrorHandler) && !(throwsCertainly && framework.hidesErrors)

  test.each(FAILURES.filter(applies))(
    '$name is sent after its key was released, and the next attempt is told what is known',
    async ({ fail, isCertain, onError, status }) => {
      const seen: unknown[] = []
      let broken = true
      const handler: Handler = (call) => {
        seen.push([call.idempotency?.attempt, call.idempotency?.previousOutcome])
        return broken ? fail(call) : { text: 'paid' }
      }
      const serving = await serve(framework, handler, onError && { onError })
      expect((await serving.send()).status).toBe(status)
      broken = false
      const other = await serving.send({ json: { amount: 200 } })
      if (isCertain) expect(other.body.toString()).toBe('paid')
      else expect(other.json()).toMatchObject({ code: 'mismatched' })
      if (!isCertain) expect((await serving.send()).body.toString()).toBe('paid')
      expect(seen).toEqual([
        [1, 'none'],
        [2, isCertain ? 'failed' : 'unknown'],
      ])
    },
  )

  test.skipIf(framework.hidesErrors)('a CertainFailure is certain, whatever is answered', async () => {
    let runs = 0
    const serving = await serve(framework, () => {
      if (++runs === 1) throw new CertainFailure('The quote has expired.')
      return { text: 'paid' }
    })
    await serving.send()
    expect((await serving.send({ json: { amount: 200 } })).body.toString()).toBe('paid')
  })

  test('after mayHaveEffect() a refusal leaves the outcome unknown', async () => {
    const serving = await serve(framework, ({ idempotency }) => {
      idempotency?.mayHaveEffect()
      return { status: 422, text: 'no' }
    })
    await serving.send()
    expect((await serving.send({ json: { amount: 200 } })).json()).toMatchObject({ code: 'mismatched' })
  })

  test('`isSuccess` decides what is a failure', async () => {
    let runs = 0
    const options = {
      isSuccess: ({ body }: { body: Uint8Array | null }) => String(Buffer.from(body ?? '')) !== 'run 1',
    }
    const serving = await serve(framework, () => ({ text: `run ${++runs}` }), { options })
    expect((await serving.send()).body.toString()).toBe('run 1')
    expect((await serving.send()).body.toString()).toBe('run 2')
    expect((await serving.send()).header('Idempotent-Replayed')).toBe('true')
  })

  test('an application whose handler fails answers as without the library', async () => {
    const fail = throws(new Error('no money'))
    const plain = await serve(framework, fail, { isProtected: false })
    const serving = await serve(framework, fail)
    const [own, first] = [await plain.send(), await serving.send()]
    expect([first.status, first.header('Content-Type')]).toEqual([own.status, own.header('Content-Type')])
  })
})
