// The function form: what is inferred, what is JSON by its type, and what is not.
import type { Store } from 'once-per-key/core'
import {
  type Json,
  type JsonInputOf,
  type JsonOf,
  type Operation,
  RefusedError,
  type RunnerEvent,
  runner,
} from 'once-per-key/run'

declare const store: Store

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const isTrue = <_ extends true>() => {}

const once = runner({ store, name: 'payouts', onEvent: (event: RunnerEvent) => void event.type })
const of = { scope: 'acme', key: 'k' }

/** Interfaces have no index signature, and are JSON all the same. */
interface Payout {
  readonly id: string
  readonly amount: number
  readonly lines: readonly { readonly sku: string; readonly note?: string | undefined }[]
  readonly pair: [string, number]
  readonly paid: boolean | null
}
declare const payout: Payout
declare function pay(): Promise<Payout>

export async function results(): Promise<void> {
  const made = await once({ ...of, input: payout }, () => pay())
  isTrue<Equal<typeof made, Payout>>()
  const inline = await once({ ...of, input: { amount: 1 } }, async ({ deriveKey }) => ({ id: deriveKey('bank') }))
  isTrue<Equal<typeof inline, { id: string }>>()
  const synchronous = await once({ ...of, input: null }, ({ attempt }) => attempt)
  isTrue<Equal<typeof synchronous, number>>()
  const nothing = await once({ ...of, input: [1, 'a'] }, async () => {})
  isTrue<Equal<typeof nothing, void>>()
  const maybe = await once({ ...of, input: 'text' }, async () => (payout.paid ? payout : null))
  isTrue<Equal<typeof maybe, Payout | null>>()
  const sometimes = await once({ ...of, input: 1 }, async () => (payout.paid ? payout.id : undefined))
  isTrue<Equal<typeof sometimes, string | undefined>>()
  const signalled: Operation<Payout> = { ...of, input: payout, signal: AbortSignal.abort() }
  isTrue<Equal<Awaited<ReturnType<typeof run>>, string>>()
  function run() {
    return once(signalled, async () => 'done')
  }
}

/** Types that are recursive, of any shape, or somebody else's. */
interface Tree {
  readonly name: string
  readonly children: readonly Tree[]
}
type Mutable = string | number | boolean | null | Mutable[] | { [name: string]: Mutable }
enum Colour {
  red = 'red',
}
declare const tree: Tree
declare const json: Mutable
// biome-ignore lint/suspicious/noExplicitAny: rows of a database are
declare const row: any
// biome-ignore lint/suspicious/noConfusingVoidType: some packages write it so
declare const gone: { readonly deleted?: void; readonly id: string }

export async function otherTypes<Of extends { readonly id: string }>(given: Of): Promise<void> {
  const grown = await once({ ...of, input: tree }, async () => tree)
  isTrue<Equal<typeof grown, Tree>>()
  const same = await once({ ...of, input: json }, async () => json)
  isTrue<Equal<typeof same, Mutable>>()
  const found = await once({ ...of, input: row }, async () => row.at)
  found.anything()
  const red: Colour = await once({ ...of, input: gone }, async () => Colour.red)
  const ended = await once({ ...of, input: { id: given.id } }, async () =>
    red === 'red' ? { ok: true as const } : { ok: false as const, why: 'x' },
  )
  if (!ended.ok) ended.why.trim()
}

/** Functions of one's own around a runner: what their types stand for is checked at run time. */
export const around = <T>(work: () => Promise<T>) => once({ ...of, input: null }, work)
export const aroundAny = <Input, T>(input: Input, work: () => T) => once({ ...of, input }, async () => work())
export const aroundJson = <T extends Json>(input: Json, work: () => T): Promise<T> => once({ ...of, input }, work)
export const checked = <Input>(input: JsonInputOf<Input> & Input) => aroundAny(input, () => 1)
isTrue<Equal<ReturnType<typeof around<Payout>>, Promise<Payout>>>()

export async function notJson(): Promise<void> {
  // @ts-expect-error an input is required
  await once(of, pay)
  // @ts-expect-error a scope is required
  await once({ key: 'k', input: null }, pay)
  // @ts-expect-error a Date is no JSON
  await once({ ...of, input: { at: new Date() } }, pay)
  // @ts-expect-error a Map is no JSON
  await once({ ...of, input: new Map() }, pay)
  // @ts-expect-error a bigint is no JSON
  await once({ ...of, input: 1n }, pay)
  // @ts-expect-error nor is undefined
  await once({ ...of, input: undefined }, pay)
  // @ts-expect-error nor in an array, which would have a hole
  await once({ ...of, input: [undefined] }, pay)
  // @ts-expect-error also beside what is JSON
  await once({ ...of, input: { notes: ['x', undefined] } }, pay)
  await once({ ...of, input: { notes: ['x', null], some: ['x'] as [string?] } }, pay)
  // @ts-expect-error nor what is not known
  await once({ ...of, input: {} as unknown }, pay)
  // @ts-expect-error a result is JSON, too
  await once({ ...of, input: null }, async () => ({ at: new Date() }))
  // @ts-expect-error also where it comes at once
  await once({ ...of, input: null }, () => new Set([1]))
  // @ts-expect-error nor undefined in an array
  await once({ ...of, input: null }, () => [undefined])
  // @ts-expect-error nor in one that is made later
  await once({ ...of, input: null }, async () => ({ notes: ['x', undefined] }))
  // @ts-expect-error the scope is a value of each call
  runner({ store, name: 'payouts', scope: () => 'acme' })
  // @ts-expect-error a name is required
  runner({ store })
}

const copying = runner({
  store,
  name: 'reports',
  result: { encode: (when: Date) => when.toISOString(), decode: (text) => new Date(text) },
})
const bytes = runner({
  store,
  name: 'images',
  result: { encode: (image: Uint8Array) => image, decode: (image) => image },
})

export async function withCodec(): Promise<void> {
  const when = await copying({ ...of, input: null }, async () => new Date())
  isTrue<Equal<typeof when, Date>>()
  isTrue<Equal<Awaited<ReturnType<typeof bytes>>, Uint8Array>>()
  // @ts-expect-error not what is encoded
  await copying({ ...of, input: null }, async () => 'text')
  // @ts-expect-error an input is JSON all the same
  await copying({ ...of, input: new Date() }, async () => new Date())
  await copying.resolve({ ...of, attempt: 1 }, { completed: new Date() })
}

export async function controls(): Promise<string | null> {
  await once.idle()
  const record = await once.inspect(of)
  await once.resolve({ ...of, attempt: record?.attempt ?? 0 }, 'failed')
  await once.resolve({ ...of, attempt: 1 }, { completed: payout })
  // @ts-expect-error the attempt that was looked at is required
  await once.resolve(of, 'completed')
  try {
    await once({ ...of, input: null }, pay)
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    switch (error.code) {
      case 'in_flight':
      case 'store_unavailable':
        return `later: ${error.retryAfterMs}`
      case 'mismatched':
      case 'answer_not_kept':
      case 'outcome_unknown':
      case 'key_expired':
      case 'transaction_missing':
        return null
      default:
        return error.code satisfies never
    }
  }
  return null
}

isTrue<Equal<JsonOf<Payout>['id'], string>>()
isTrue<Equal<{ at: Date } extends JsonOf<{ at: Date }> ? true : false, false>>()
