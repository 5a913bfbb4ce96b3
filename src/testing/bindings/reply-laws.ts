import { Buffer } from 'node:buffer'
import { assertPromise } from '../seen.js'
import type { BindingReply } from './binding-app.js'
import { assertProblem, type BindingLaw, createBindingLaw, createBindingLaws, type SeenReply } from './binding-bench.js'

const ALL_BYTES = Uint8Array.from({ length: 256 }, (_, i) => i)
const TEXT = ['Content-Type', 'text/plain; charset=utf-8'] as const
const BYTES = ['Content-Type', 'application/octet-stream'] as const

const REPLIES: Readonly<Record<string, BindingReply>> = {
  json: { status: 201, json: { paid: 1200, to: 'Zoë' } },
  text: { text: 'paid ✓', headers: [TEXT] },
  bytes: { bytes: ALL_BYTES, headers: [['Content-Type', 'image/png']] },
  'a status without a body': { status: 202 },
  '204': { status: 204, headers: [['X-Receipt', '17']] },
  'a redirect': { status: 303, redirect: 'http://test/receipts/17' },
  'several Link headers': {
    text: 'linked',
    headers: [TEXT, ['Link', '</a>; rel="next"'], ['Link', '</b>; rel="prev"']],
  },
  'header bytes that are not ASCII': { bytes: Buffer.from('named'), headers: [BYTES, ['X-Name', 'Zo\u00eb \u00a3']] },
}

const COOKIES = ['a=1; Path=/', 'b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT']

export const replyLaws: readonly BindingLaw[] = [
  ...Object.entries(REPLIES).map(([style, reply]) =>
    createBindingLaw(
      `replay: ${style}: the first answer is the handler's own, and a retry gets it again, byte for byte`,
      async (serve) => {
        const plain = await serve(() => reply, { isProtected: false })
        const served = await serve(() => reply)
        const own = await plain.send()
        const first = await served.send()
        const replay = await served.send()
        assertPromise(
          toComparableReply(first),
          toComparableReply(own),
          'The first response is the one that the application sends by itself.',
        )
        assertPromise(
          toComparableReply(replay),
          toComparableReply(first),
          'A replay is the first response again, byte for byte.',
        )
        assertPromise(first.listHeaderValues('Idempotent-Replayed'), [], 'A first response is not marked as a replay.')
        assertPromise(replay.listHeaderValues('Idempotent-Replayed'), ['true'], 'A replay is marked as one.')
        assertPromise(served.runs(), 1, 'A handler runs once.')
      },
    ),
  ),

  ...createBindingLaws({
    'replay: cookies reach the first client, line by line, and no other': async (serve) => {
      const served = await serve(() => ({ text: 'paid', headers: toCookieLines(COOKIES) }))
      assertPromise((await served.send()).listHeaderValues('Set-Cookie'), COOKIES, 'Each cookie is a line of its own.')
      assertPromise((await served.send()).listHeaderValues('Set-Cookie'), [], 'A replay sets no cookies.')
    },

    'replay: cookies that `keepHeader` keeps are replayed line by line': async (serve) => {
      const options = { keepHeader: () => true }
      const served = await serve(() => ({ text: 'paid', headers: toCookieLines(COOKIES) }), { options })
      await served.send()
      assertPromise((await served.send()).listHeaderValues('Set-Cookie'), COOKIES, 'Each cookie is a line of its own.')
    },

    'too large: an answer that is longer than `maxAnswerBytes` is sent, and not kept': async (serve) => {
      const bytes = new Uint8Array(1_025).fill(1)
      const served = await serve(() => ({ bytes, headers: [BYTES] }), { options: { maxAnswerBytes: 1_024 } })
      assertPromise((await served.send()).body, Buffer.from(bytes), 'The first client gets the whole answer.')
      const again = await served.send()
      assertProblem(again, 409, 'answer_not_kept', 'A retry is told that the answer was not kept.')
      assertPromise(served.runs(), 1, 'An operation whose answer was not kept does not run again.')
    },
  }),
]

function toCookieLines(cookies: readonly string[]) {
  return cookies.map((cookie) => ['Set-Cookie', cookie] as const)
}

/** Of one moment or connection, or a default that servers add. */
export const VOLATILE: ReadonlySet<string> = new Set([
  'date',
  'connection',
  'keep-alive',
  'content-length',
  'transfer-encoding',
  'idempotent-replayed',
])

/** What two responses share if they are the same answer. */
function toComparableReply({ status, headers, body }: SeenReply): unknown {
  const byName: Record<string, string[]> = {}
  for (const [name, value] of headers) {
    const lowerCase = name.toLowerCase()
    if (!VOLATILE.has(lowerCase)) byName[lowerCase] = [...(byName[lowerCase] ?? []), value]
  }
  // RFC 9110 §5.3: several lines of one name equal one line with commas; Fetch joins them.
  const joined = Object.entries(byName).map(([name, values]) => [name, values.join(', ')] as const)
  return { status, headers: Object.fromEntries(joined.sort()), body: body.toString('latin1') }
}
