import { Buffer } from 'node:buffer'
import { CertainFailure } from '../../core/index.js'
import { assertPromise } from '../seen.js'
import type { BindingApp, BindingReply } from './binding-app.js'
import { type BindingLaw, createBindingLaw, createBindingLaws, type Serve } from './binding-bench.js'

type Handler = BindingApp['handler']

interface Failure {
  readonly name: string
  readonly fail: Handler
  /** Certainly without effect: a corrected request may follow. */
  readonly isCertain: boolean
  readonly onError?: (error: unknown) => BindingReply
  readonly status: number
  readonly holds?: BindingLaw['holds']
}

const createThrowing = (error: unknown): Handler => {
  return () => {
    throw error
  }
}
const createAnswering = (status: number) => () => ({ status, text: 'no' })
const noMoney = new Error('no money')
/** As HTTP clients throw them: with the other service's response, and its status, which error handlers send. */
const unauthorized = Object.assign(new Error('401'), { status: 401, statusCode: 401, response: { status: 401 } })
const missing = Object.assign(new Error('ENOENT'), { status: 404, statusCode: 404, code: 'ENOENT', syscall: 'open' })
const wrapped = Object.assign(new Error('no mail', { cause: unauthorized }), { status: 400, statusCode: 400 })

const FAILURES: readonly Failure[] = [
  { name: 'an answer of 422', fail: createAnswering(422), status: 422, isCertain: true },
  { name: 'an answer of 408', fail: createAnswering(408), status: 408, isCertain: false },
  { name: 'an answer of 503', fail: createAnswering(503), status: 503, isCertain: false },
  {
    name: 'a redirect that asks for the same request again (307)',
    fail: () => ({ status: 307, redirect: 'http://test/elsewhere' }),
    status: 307,
    isCertain: false,
  },
  { name: 'a throw', fail: createThrowing(noMoney), status: 500, isCertain: false },
  { name: 'a rejection', fail: async () => Promise.reject(noMoney), status: 500, isCertain: false },
  {
    name: 'a throw that the application answers with 500',
    fail: createThrowing(noMoney),
    onError: createAnswering(500),
    status: 500,
    isCertain: false,
    holds: ({ hasNoErrorHandler }) => !hasNoErrorHandler,
  },
  {
    name: 'a throw that the application answers with 409',
    fail: createThrowing(noMoney),
    onError: createAnswering(409),
    status: 409,
    isCertain: true,
    holds: ({ hasNoErrorHandler }) => !hasNoErrorHandler,
  },
  {
    name: 'a CertainFailure that the application answers with 500',
    fail: createThrowing(new CertainFailure('The quote has expired.')),
    onError: createAnswering(500),
    status: 500,
    isCertain: true,
    holds: ({ hasNoErrorHandler, hidesErrors }) => !hasNoErrorHandler && !hidesErrors,
  },
  {
    name: "another service's response that the application answers with its status, 401,",
    fail: createThrowing(unauthorized),
    onError: createAnswering(401),
    status: 401,
    isCertain: false,
    holds: ({ hasNoErrorHandler, hidesErrors }) => !hasNoErrorHandler && !hidesErrors,
  },
]

export const failureLaws: readonly BindingLaw[] = [
  ...FAILURES.map((failure) => {
    const name = `failure: ${failure.name} releases the key first, and the next attempt is told what is known`
    return createBindingLaw(name, (serve) => tryFailure(serve, failure), failure.holds)
  }),

  ...createBindingLaws(
    {
      'failure: a CertainFailure is certain, whatever is answered': async (serve) => {
        let runs = 0
        const served = await serve(() => {
          if (++runs === 1) throw new CertainFailure('The quote has expired.')
          return { text: 'paid' }
        })
        await served.send()
        const corrected = await served.send({ json: { amount: 200 } })
        assertPromise(corrected.text, 'paid', 'A corrected request may follow a CertainFailure.')
      },

      "failure: another service's response, an error of the system and what they caused are no refusal, whatever is answered":
        async (serve) => {
          const errors = { unauthorized, missing, wrapped }
          let error: Error | undefined
          const served = await serve(() => {
            if (error !== undefined) throw error
            return { text: 'paid' }
          })
          for (const [key, each] of Object.entries(errors)) {
            error = each
            await served.send({ key })
            error = undefined
            const other = await served.send({ key, json: { amount: 200 } })
            assertPromise(other.code, 'mismatched', "The status of another service's response is not the handler's.")
          }
        },
    },
    ({ hidesErrors }) => !hidesErrors,
  ),

  ...createBindingLaws({
    'failure: after mayHaveEffect() a refusal leaves the outcome unknown': async (serve) => {
      const served = await serve(({ idempotency }) => {
        idempotency?.mayHaveEffect()
        return { status: 422, text: 'no' }
      })
      await served.send()
      const other = await served.send({ json: { amount: 200 } })
      assertPromise(other.code, 'mismatched', 'A key whose outcome is unknown stays bound to its request.')
    },

    'failure: `isSuccess` decides what is a failure': async (serve) => {
      let runs = 0
      const options = {
        isSuccess: ({ body }: { body: Uint8Array | null }) => String(Buffer.from(body ?? '')) !== 'run 1',
      }
      const served = await serve(() => ({ text: `run ${++runs}` }), { options })
      const texts = [(await served.send()).text, (await served.send()).text]
      assertPromise(texts, ['run 1', 'run 2'], 'After a failure the handler runs again.')
      assertPromise(
        (await served.send()).listHeaderValues('Idempotent-Replayed'),
        ['true'],
        'After a success it does not.',
      )
    },

    'failure: an application whose handler throws answers as without the library': async (serve) => {
      const plain = await serve(createThrowing(noMoney), { isProtected: false })
      const served = await serve(createThrowing(noMoney))
      const [own, first] = [await plain.send(), await served.send()]
      const seen = [first.status, first.findHeader('Content-Type')]
      assertPromise(
        seen,
        [own.status, own.findHeader('Content-Type')],
        'Errors are answered by the application, or its server.',
      )
    },
  }),
]

async function tryFailure(serve: Serve, failure: Failure): Promise<void> {
  const { fail, isCertain, onError, status } = failure
  const seen: unknown[] = []
  let fails = true
  const handler: Handler = (call) => {
    seen.push([call.idempotency?.attempt, call.idempotency?.previousOutcome])
    return fails ? fail(call) : { text: 'paid' }
  }
  const served = await serve(handler, onError && { onError })
  assertPromise((await served.send()).status, status, 'The failure is sent.')
  fails = false
  const other = await served.send({ json: { amount: 200 } })
  if (isCertain) {
    assertPromise(other.text, 'paid', 'A corrected request may follow a certain failure.')
  } else {
    assertPromise(other.code, 'mismatched', 'A key whose outcome is unknown stays bound to its request.')
    assertPromise((await served.send()).text, 'paid', 'The same request may be tried again.')
  }
  const due = [
    [1, 'none'],
    [2, isCertain ? 'failed' : 'unknown'],
  ]
  assertPromise(seen, due, 'The next attempt is told what is known of the last one.')
}
