import { bodyField } from '../../http/index.js'
import { assertPromise } from '../seen.js'
import { assertProblem, type BindingLaw, createBindingLaws, type SeenReply } from './binding-bench.js'

const answerPaid = () => ({ text: 'paid' })
const options = {
  legacyKey: bodyField('idempotencyKey', {
    deprecatedSince: new Date('2026-01-01T00:00:00Z'),
    sunset: new Date('2027-01-01T00:00:00Z'),
    link: 'https://example.com/moved',
  }),
}
const IN_FIELD = { key: null, json: { amount: 100, idempotencyKey: 'k' } }
const DEPRECATION = {
  Deprecation: '@1767225600',
  Sunset: 'Fri, 01 Jan 2027 00:00:00 GMT',
  Link: '<https://example.com/moved>; rel="deprecation"',
}

/** The key in a deprecated field of the body. */
export const legacyKeyLaws: readonly BindingLaw[] = [
  ...createBindingLaws({
    'legacy field: a client can move from the field to the header between two tries; the field is deprecated': async (
      serve,
    ) => {
      const served = await serve(answerPaid, { options })
      assertPromise(
        getDeprecationHeaders(await served.send(IN_FIELD)),
        DEPRECATION,
        'A key in the field is deprecated.',
      )
      const replay = await served.send(IN_FIELD)
      assertPromise(replay.listHeaderValues('Idempotent-Replayed'), ['true'], 'A key in the field is a key.')
      assertPromise(getDeprecationHeaders(replay), DEPRECATION, 'A replay to a key in the field is deprecated, too.')
      const byHeader = await served.send()
      assertPromise(
        byHeader.listHeaderValues('Idempotent-Replayed'),
        ['true'],
        'The field does not count in the fingerprint.',
      )
      assertPromise(
        byHeader.listHeaderValues('Deprecation'),
        [],
        'A key in the header is not deprecated: nothing of it is stored.',
      )
      assertPromise(served.runs(), 1, 'The same key in the field and in the header is one.')
    },

    'legacy field: a field and a header that differ are 400 key_invalid, and deprecated': async (serve) => {
      const served = await serve(answerPaid, { options })
      const refusal = await served.send({ ...IN_FIELD, key: 'other' })
      assertProblem(refusal, 400, 'key_invalid', 'A request has one key.')
      assertPromise(
        getDeprecationHeaders(refusal),
        DEPRECATION,
        'A refusal of a request with the field is deprecated, too.',
      )
      assertPromise(served.runs(), 0, 'A request that is refused does not run.')
    },

    'legacy field: a form has it, too': async (serve) => {
      const served = await serve(answerPaid, { options })
      const form = { key: null, headers: [['Content-Type', 'application/x-www-form-urlencoded']] as const }
      await served.send({ ...form, bytes: 'amount=1&idempotencyKey=k' })
      const replay = await served.send({ ...form, bytes: 'idempotencyKey=k&amount=1' })
      assertPromise(replay.listHeaderValues('Idempotent-Replayed'), ['true'], 'A form counts by its fields.')
    },
  }),

  ...createBindingLaws(
    {
      'legacy field: in JSON that is broken it is 400 key_invalid': async (serve) => {
        const served = await serve(answerPaid, { options })
        const headers = [['Content-Type', 'application/json']] as const
        const refusal = await served.send({ key: null, headers, bytes: '{"idempotencyKey":"k"' })
        assertProblem(refusal, 400, 'key_invalid', 'A key that cannot be read is not no key.')
        assertPromise(served.runs(), 0, 'A request that is refused does not run.')
      },
    },
    ({ readsBodies = false }) => readsBodies,
  ),
]

function getDeprecationHeaders(reply: SeenReply): unknown {
  return Object.fromEntries(Object.keys(DEPRECATION).map((name) => [name, reply.findHeader(name)]))
}
