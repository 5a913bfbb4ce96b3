import { ietfDraft } from '../../http/index.js'
import { assertPromise } from '../seen.js'
import {
  assertProblem,
  type BindingLaw,
  createBindingLaw,
  createBindingLaws,
  createTrialStore,
  type PayoutRequest,
} from './binding-bench.js'

const answerPaid = () => ({ text: 'paid' })
const JSON_TYPE = [['Content-Type', 'application/json']] as const
const OCTETS = [['Content-Type', 'application/octet-stream']] as const
const PROBLEM = 'application/problem+json'

const OTHERS: Readonly<Record<string, PayoutRequest>> = {
  'another body': { json: { amount: 200 } },
  'another query': { target: '/payouts?dry=1' },
  'another path': { target: '/payouts/17' },
  'another method': { method: 'PUT' },
  'a body of bytes': { bytes: 'a', headers: OCTETS },
}

const MISTAKES: readonly (readonly [request: string, code: string, sent: PayoutRequest])[] = [
  ['a request without a key where one is required', 'key_missing', { key: null }],
  ['an empty key', 'key_invalid', { key: '' }],
  ['a key of 256 characters', 'key_invalid', { key: 'k'.repeat(256) }],
  ['the key `undefined`', 'key_invalid', { key: 'undefined' }],
  [
    'a body of 1,001 levels',
    'body_too_deep',
    { bytes: `${'['.repeat(1_001)}${']'.repeat(1_001)}`, headers: JSON_TYPE },
  ],
]

/** Two requests that a server may take for one. */
const ALIKE: Readonly<Record<string, readonly [one: PayoutRequest, other: PayoutRequest]>> = {
  'a path in another case': [{ target: '/payouts' }, { target: '/Payouts' }],
  'a slash behind the path': [{ target: '/payouts' }, { target: '/payouts/' }],
  'a path that is decoded': [{ target: '/payouts/a%2Fb' }, { target: '/payouts/a/b' }],
  'a query in another order': [{ target: '/payouts?a=1&b=2' }, { target: '/payouts?b=2&a=1' }],
  'other bytes that are no text': [
    { bytes: Uint8Array.of(0xff), headers: OCTETS },
    { bytes: Uint8Array.of(0xfe), headers: OCTETS },
  ],
}

/** The problems that a client or a store can cause: the handler never runs. */
export const refusalLaws: readonly BindingLaw[] = [
  ...Object.entries(OTHERS).map(([what, sent]) =>
    createBindingLaw(`mismatch: the key with ${what} is refused, and the handler does not run`, async (serve) => {
      const served = await serve(answerPaid)
      await served.send()
      const other = await served.send(sent)
      const seen = [other.status, other.findHeader('Content-Type'), other.code]
      assertPromise(seen, [409, PROBLEM, 'mismatched'], 'A key belongs to its first request.')
      const advice = [other.findHeader('X-Should-Retry'), other.listHeaderValues('Retry-After')]
      assertPromise(advice, ['false', []], 'A mismatch is not worth a retry.')
      assertPromise(served.runs(), 1, 'A request that is refused does not run.')
    }),
  ),

  ...Object.entries(ALIKE).map(([what, [one, other]]) =>
    createBindingLaw(`mismatch: the key with ${what} is refused`, async (serve) => {
      const served = await serve(answerPaid)
      assertPromise((await served.send(one)).status, 200, 'The first request is carried out.')
      assertPromise(
        (await served.send(one)).listHeaderValues('Idempotent-Replayed'),
        ['true'],
        'Its repeat is the same request.',
      )
      const refusal = await served.send(other)
      assertProblem(refusal, 409, 'mismatched', 'A request counts as it was sent.')
    }),
  ),

  ...MISTAKES.map(([request, code, sent]) =>
    createBindingLaw(`problem: ${request} is 400 ${code}, and the handler does not run`, async (serve) => {
      const served = await serve(answerPaid, { options: { required: true } })
      const refusal = await served.send(sent)
      assertProblem(refusal, 400, code, 'The problem says what is wrong.')
      const { type, status } = JSON.parse(refusal.text)
      const due = [PROBLEM, `urn:once-per-key:problem:${code}`, 400]
      assertPromise([refusal.findHeader('Content-Type'), type, status], due, 'A problem has the form of RFC 9457.')
      assertPromise(served.events, [{ type: 'rejected', code }], 'A refusal is an event.')
      assertPromise(served.runs(), 0, 'A request that is refused does not run.')
    }),
  ),

  ...createBindingLaws({
    'mismatch: JSON with its members in another order, and other white space, is the same request': async (serve) => {
      const served = await serve(answerPaid)
      await served.send({ json: { amount: 100, to: { name: 'Zoë', bank: 1 } } })
      const bytes = '{ "to": {"bank":1.0, "name":"Zo\\u00eb"},\n "amount": 1e2 }'
      const headers = [['Content-Type', 'application/json; charset=utf-8']] as const
      const again = await served.send({ bytes, headers })
      assertPromise(again.listHeaderValues('Idempotent-Replayed'), ['true'], 'JSON counts by its value.')
    },

    'problem: `problemStatuses` and `renderProblem` shape refusals': async (serve) => {
      const contentType = 'application/vnd.api+json'
      const renderProblem = ({ code }: { code: string }) => ({ contentType, body: { errors: [code] } })
      const served = await serve(answerPaid, { options: { problemStatuses: ietfDraft, renderProblem } })
      await served.send()
      const refusal = await served.send({ json: { amount: 200 } })
      const seen = [refusal.status, refusal.findHeader('Content-Type'), refusal.text]
      assertPromise(seen, [422, contentType, '{"errors":["mismatched"]}'], 'The application decides how problems look.')
    },

    'problem: a store that is away is 503 with advice to come back, and the handler does not run': async (serve) => {
      const store = createTrialStore()
      const served = await serve(answerPaid, { options: { store } })
      store.failNextBegin()
      const refusal = await served.send()
      assertProblem(refusal, 503, 'store_unavailable', 'Without its store the library refuses.')
      const advice = [refusal.findHeader('Retry-After'), refusal.findHeader('X-Should-Retry')]
      assertPromise(advice, ['1', 'true'], 'A client is told to come back.')
      assertPromise(served.runs(), 0, 'A request that is refused does not run.')
      assertPromise((await served.send()).text, 'paid', 'Once the store is back, the request runs.')
    },

    'misuse: a scope that is none is answered with 500, and the handler does not run': async (serve) => {
      const served = await serve(answerPaid, { options: { scope: () => undefined } })
      assertPromise((await served.send()).status, 500, 'Misuse goes to the error handling of the framework.')
      assertPromise(served.runs(), 0, 'After misuse the handler does not run.')
      assertPromise(served.events, [], 'After misuse nothing was stored.')
    },
  }),

  ...createBindingLaws(
    {
      'problem: two lines of the key header are 400 key_invalid': async (serve) => {
        const served = await serve(answerPaid)
        const refusal = await served.send({ headers: [['Idempotency-key', 'other']] })
        assertProblem(refusal, 400, 'key_invalid', 'A request has one key.')
        assertPromise(served.runs(), 0, 'A request that is refused does not run.')
      },
    },
    ({ joinsHeaderLines = false }) => !joinsHeaderLines,
  ),

  ...createBindingLaws(
    {
      'problem: JSON that does not parse is 400 body_malformed, and the corrected body runs under the same key': async (
        serve,
      ) => {
        const served = await serve(({ json }) => Promise.resolve(json()).then(answerPaid))
        for (const bytes of ['{"amount":', ' ', 'paid']) {
          const refusal = await served.send({ bytes, headers: JSON_TYPE })
          const seen = [refusal.status, refusal.code, refusal.findHeader('X-Should-Retry')]
          assertPromise(
            seen,
            [400, 'body_malformed', 'false'],
            'A body that no handler can read is refused before the claim.',
          )
        }
        assertPromise(served.runs(), 0, 'A request that is refused does not run.')
        assertPromise((await served.send()).text, 'paid', 'A refusal leaves the key free.')
      },

      'too large: a request body of more than 1 MiB is 413 body_too_large; without a key it passes': async (serve) => {
        const served = await serve(async ({ bytes }) => ({ text: String((await bytes()).byteLength) }))
        const MOST = 2 ** 20
        const large = { bytes: new Uint8Array(MOST + 1), headers: OCTETS }
        const refusal = await served.send(large)
        assertProblem(refusal, 413, 'body_too_large', 'A binding holds no more than its limit.')
        assertPromise(served.runs(), 0, 'A request that is refused does not run.')
        assertPromise(
          (await served.send({ ...large, key: null })).text,
          `${MOST + 1}`,
          'Without a key nothing is held.',
        )
        const most = await served.send({ ...large, bytes: large.bytes.subarray(1) })
        assertPromise(most.text, `${MOST}`, 'A body of exactly the limit is read.')
      },
    },
    ({ readsBodies = false }) => readsBodies,
  ),
]
