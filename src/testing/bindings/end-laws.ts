import type { Answer, Store } from '../../core/index.js'
import { promised } from '../seen.js'
import { type BindingLaw, bindingLawsOf, trialStore } from './binding-bench.js'
import { latch } from './run-laws.js'

const ENDS = {
  'a success': { status: 200, command: 'complete' },
  'a refusal': { status: 422, command: 'release' },
  'an unknown outcome': { status: 503, command: 'release' },
  'a throw': { status: 500, command: 'release' },
} as const

const OTHERS: Answer = {
  status: 202,
  statusMessage: '',
  headers: [['Content-Type', 'text/plain; charset=utf-8']],
  body: new TextEncoder().encode('paid by another'),
}

/** A response leaves after its run was settled, and is the one that the record allows. */
export const endLaws: readonly BindingLaw[] = [
  ...Object.entries(ENDS).map(([what, { status, command }]): BindingLaw => {
    return {
      name: `end: ${what} is sent after the store has confirmed it, not before`,
      async check({ serve }) {
        const [asked, confirmed] = [latch(), latch()]
        const inner = trialStore()
        const store: Store = {
          ...inner,
          [command]: async (key: string, own: never) => {
            asked.open()
            await confirmed.opened
            return inner[command](key, own)
          },
        }
        const handler = () => {
          if (what === 'a throw') throw new Error('no money')
          return { status, text: 'ended' }
        }
        const served = await serve(handler, { options: { store } })
        let hasLeft = false
        const first = served.send().finally(() => {
          hasLeft = true
        })
        await Promise.race([asked.opened, first])
        // A whole exchange later, a response that had been sent would be here.
        const duplicate = await served.send()
        const seen = [hasLeft, duplicate.code]
        confirmed.open()
        promised(seen, [false, 'in_flight'], 'Whoever has seen an end can send again at once.')
        promised((await first).status, status, 'Then it is sent.')
      },
    }
  }),

  ...bindingLawsOf({
    'end: where another attempt has completed the key, its answer is sent, and not the own one': async ({ serve }) => {
      const store: Store = {
        ...trialStore(),
        complete: async (_, { fingerprint }) => {
          return { ok: false, record: { state: 'completed', fingerprint, attempt: 2, answer: OTHERS } }
        },
      }
      const served = await serve(() => ({ text: 'paid' }), { options: { store } })
      const reply = await served.send()
      const seen = [reply.status, reply.text, reply.lines('Idempotent-Replayed')]
      promised(seen, [202, 'paid by another', ['true']], 'Nobody is sent a success that no record holds.')
    },

    'end: where another attempt owns the key, 409 in_flight is sent, and not the own answer': async ({ serve }) => {
      const store: Store = {
        ...trialStore(),
        complete: async (_, { fingerprint }) => {
          const record = {
            state: 'in-flight',
            fingerprint,
            attempt: 2,
            uncertain: true,
            leaseRemainingMs: 1_000,
          } as const
          return { ok: false, record }
        },
      }
      const served = await serve(() => ({ text: 'paid' }), { options: { store } })
      const reply = await served.send()
      promised([reply.status, reply.code], [409, 'in_flight'], 'Nobody is sent a success that no record holds.')
    },
  }),
]
