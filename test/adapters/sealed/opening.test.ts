import type { Answer, machine, Store } from 'once-per-key/core'
import { newSealingKey, type SealedOptions, sealed, sealingKeyId } from 'once-per-key/sealed'
import { describe, expect, test } from 'vitest'
import { mapStore } from '../../support/map-store.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'

const FINGERPRINT = 'fingerprint'
const [KEY, OTHER_KEY, THIRD_KEY] = [newSealingKey(), newSealingKey(), newSealingKey()]
const SECRET: Answer = { ...ANSWER, statusMessage: 'Paid to DE99', body: Buffer.from('{"iban":"DE99"}'.repeat(40)) }

type Completed = Extract<machine.StoredRecord, { state: 'completed' }>

/** A sealed store over a Map, in whose records a test can look, and write. */
function opened(options: Partial<SealedOptions> = {}, records = new Map<string, machine.StoredRecord>()) {
  const inner = mapStore(() => 1, undefined, records)
  const store = sealed(inner, { keys: [KEY], ...options })
  const complete = (key: string, answer = SECRET, fingerprint = FINGERPRINT) =>
    store.complete(key, { ...ownOf('owner', fingerprint), answer })
  const kept = (key: string) => records.get(key) as Completed
  const change = (key: string, answer: Partial<Answer>) => {
    const record = kept(key)
    records.set(key, { ...record, answer: { ...record.answer, ...answer } })
  }
  const replayed = async (key: string, fingerprint = FINGERPRINT) => {
    const reply = await store.begin(key, claimOf('reader', fingerprint))
    return !reply.acquired && reply.record.state === 'completed' ? reply.record.answer : 'no answer'
  }
  return { inner, store, records, complete, kept, change, replayed }
}

const bytesIn = (answer: Answer) => Buffer.from(answer.body ?? Buffer.from(answer.headers[0]?.[1] ?? '', 'base64'))
const asBytes = (answer: unknown) => ({ ...(answer as Answer), body: Buffer.from((answer as Answer).body ?? []) })

describe.each([false, true])('a sealed answer (compressed: %s)', (compress) => {
  test('shows nothing of status, reason, headers and body, and is opened as it was', async () => {
    const { complete, kept, replayed } = opened({ compress })
    await complete('k')
    const { body, ...rest } = kept('k').answer
    const stored = JSON.stringify(rest) + Buffer.from(body as Uint8Array).toString('latin1')
    for (const plain of ['DE99', 'iban', 'Paid to', 'Link', 'next', '[201']) expect(stored).not.toContain(plain)
    expect(asBytes(await replayed('k'))).toEqual(asBytes(SECRET))
  })

  test('is not opened when any one of its bits was flipped', async () => {
    const { complete, kept, change, replayed } = opened({ compress })
    await complete('k', { ...SECRET, body: Buffer.from('short') })
    const bytes = bytesIn(kept('k').answer)
    for (let bit = 0; bit < 8 * bytes.byteLength; bit++) {
      const flipped = Buffer.from(bytes)
      flipped[bit >> 3] = (flipped[bit >> 3] as number) ^ (1 << (bit & 7))
      change('k', { body: flipped })
      await expect(replayed('k'), `bit ${bit}`).rejects.toMatchObject({ name: 'SealedStoreError' })
    }
    change('k', { body: bytes })
    expect(asBytes(await replayed('k')).body.toString()).toBe('short')
  })

  test('is not opened when it was cut short, or has more behind it', async () => {
    const { complete, kept, change, replayed } = opened({ compress })
    await complete('k')
    const bytes = bytesIn(kept('k').answer)
    for (const body of [bytes.subarray(0, -1), bytes.subarray(0, 20), Buffer.alloc(0), Buffer.concat([bytes, bytes])]) {
      change('k', { body })
      await expect(replayed('k')).rejects.toMatchObject({ code: 'seal_broken' })
    }
  })
})

describe('an answer that was moved', () => {
  test('to another record is not opened there', async () => {
    const { records, complete, kept, replayed } = opened()
    await complete('acme:order-1')
    await complete('globex:order-1')
    records.set('globex:order-1', kept('acme:order-1'))
    await expect(replayed('globex:order-1')).rejects.toMatchObject({ code: 'seal_broken' })
  })

  test('to a store with another prefix or schema is not opened there', async () => {
    const records = new Map<string, machine.StoredRecord>()
    const storeAt = (place: string | undefined) =>
      sealed(
        Object.assign(
          mapStore(() => 1, undefined, records),
          place === undefined ? {} : { place },
        ),
        { keys: [KEY] },
      )
    const complete = { ...ownOf('owner', FINGERPRINT), answer: SECRET }
    await storeAt('test:').complete('acme:order-1', complete)
    const opened = await storeAt('test:').inspect?.('acme:order-1')
    expect(opened).toMatchObject({ answer: { status: SECRET.status } })
    for (const place of ['live:', '', undefined]) {
      const looked = async () => storeAt(place).inspect?.('acme:order-1')
      await expect(looked()).rejects.toMatchObject({ code: 'seal_broken' })
    }
  })

  test('to a record of another request is not opened there', async () => {
    const { records, complete, kept, replayed } = opened()
    await complete('k')
    records.set('k', { ...kept('k'), fingerprint: 'another' })
    await expect(replayed('k', 'another')).rejects.toMatchObject({ code: 'seal_broken' })
  })

  test('from the head of one that was not kept to the body of one that was, is not opened', async () => {
    const { complete, kept, change, replayed } = opened()
    await complete('k', { ...SECRET, body: null })
    const body = bytesIn(kept('k').answer)
    change('k', { headers: [], body })
    await expect(replayed('k')).rejects.toMatchObject({ code: 'seal_broken' })
  })
})

describe('an answer that was not kept', () => {
  test('shows nothing of its head, which is opened as it was', async () => {
    const { complete, kept, replayed } = opened()
    await complete('k', { ...SECRET, body: null })
    expect(kept('k').answer).toMatchObject({ status: 0, statusMessage: 'sealed', body: null })
    expect(JSON.stringify(kept('k').answer)).not.toContain('DE99')
    expect(await replayed('k')).toEqual({ ...SECRET, body: null })
  })

  test('is not opened when its head was changed, or is gone', async () => {
    const { complete, kept, change, replayed } = opened()
    await complete('k', { ...SECRET, body: null })
    const bytes = bytesIn(kept('k').answer)
    bytes[bytes.byteLength - 1] = (bytes.at(-1) as number) ^ 1
    for (const headers of [[['sealed', bytes.toString('base64')]], [['sealed', '']], []] as const) {
      change('k', { headers })
      await expect(replayed('k')).rejects.toMatchObject({ code: 'seal_broken' })
    }
  })

  test('is taken as one where the store or an operator dropped it', async () => {
    const { complete, change, replayed } = opened()
    await complete('k')
    change('k', { status: 200, statusMessage: '', headers: [], body: null })
    expect(await replayed('k')).toMatchObject({ body: null })
  })
})

describe('an answer that is not sealed', () => {
  test('is a store failure, and is replayed only where that is said', async () => {
    const { inner, records, replayed } = opened()
    await inner.complete('k', { ...ownOf('owner', FINGERPRINT), answer: SECRET })
    await expect(replayed('k')).rejects.toMatchObject({ code: 'answer_unsealed' })
    const lenient = opened({ unsealedMayBeReplayed: true }, records)
    expect(asBytes(await lenient.replayed('k'))).toEqual(asBytes(SECRET))
  })
})

test('a step’s result that is not sealed is used only with `unsealedMayBeReplayed`', async () => {
  const result = Buffer.from('"charge_7"')
  const { inner, records, store } = opened()
  await inner.begin('k', claimOf('dead'))
  await inner.step?.('k', { ...ownOf('dead'), label: 'charge', order: 1, state: 'done', result, leaseMs: 1 })
  await inner.release('k', { ...ownOf('dead'), uncertain: true, failedMs: 1 })
  await expect(store.begin('k', claimOf('next'))).rejects.toMatchObject({ code: 'answer_unsealed' })
  const lenient = opened({ unsealedMayBeReplayed: true }, records)
  expect(await lenient.store.begin('k', claimOf('next'))).toMatchObject({ steps: [{ label: 'charge', result }] })
})

describe('keys', () => {
  test('rotate: the first one seals, and each of them opens', async () => {
    const { records, complete, replayed } = opened({ keys: [KEY] })
    await complete('old')
    const rotated = opened({ keys: [OTHER_KEY, KEY] }, records)
    await rotated.complete('new')
    expect(asBytes(await rotated.replayed('old'))).toEqual(asBytes(SECRET))
    expect(asBytes(await rotated.replayed('new'))).toEqual(asBytes(SECRET))
    await expect(replayed('new')).rejects.toMatchObject({ code: 'seal_key_missing' })
  })

  test('that are missing are named by their ids alone', async () => {
    const { records, complete } = opened({ keys: [KEY] })
    await complete('k')
    const error = await opened({ keys: [OTHER_KEY, THIRD_KEY] }, records)
      .replayed('k')
      .catch((error: Error) => error)
    expect(error).toMatchObject({ code: 'seal_key_missing' })
    const { message } = error as Error
    for (const key of [KEY, OTHER_KEY, THIRD_KEY]) {
      expect(message).toContain(sealingKeyId(key))
      expect(message).not.toContain(key)
    }
  })

  test('may be bytes or either base64; each seal is of its own, also of the same answer', async () => {
    const bytes = Buffer.from(KEY, 'base64')
    expect(new Set([KEY, bytes, bytes.toString('base64url')].map(sealingKeyId)).size).toBe(1)
    const { complete, kept } = opened({ keys: [bytes] })
    await complete('k')
    await complete('l')
    expect(bytesIn(kept('k').answer).equals(bytesIn(kept('l').answer))).toBe(false)
  })

  test.each([
    ['none', [], 'seen: none'],
    ['a word', ['secret'], 'a string of 6 characters'],
    ['31 bytes', [KEY, Buffer.alloc(31)], 'at 1: 31 bytes'],
    ['a digest in hexadecimal', ['a'.repeat(64)], 'a string of 64 characters'],
    ['one twice', [KEY, Buffer.from(KEY, 'base64')], 'one of them twice'],
    ['no list', KEY, 'a string'],
  ])('that are none (%s) are a mistake, in which no key is shown', (_name, keys, seen) => {
    const build = () => sealed(mapStore(Date.now), { keys } as SealedOptions)
    expect(build).toThrow(expect.objectContaining({ code: 'options_invalid', message: expect.stringContaining(seen) }))
    expect(build).not.toThrow(KEY)
  })

  test('that are none have no id', () => {
    expect(() => sealingKeyId('secret')).toThrow(expect.objectContaining({ code: 'arguments_invalid' }))
  })
})

test('a stranger with another fingerprint is shown no answer, and nothing is opened for it', async () => {
  const { complete, change, replayed } = opened()
  await complete('k')
  change('k', { body: Buffer.from('broken') })
  expect(await replayed('k', 'another')).toBeNull()
})

test('a compressed answer is smaller, and never longer than one that is not', async () => {
  const sizes = async (compress: boolean, body: Uint8Array) => {
    const { complete, kept } = opened({ compress })
    await complete('k', { ...SECRET, body })
    return bytesIn(kept('k').answer).byteLength
  }
  const text = Buffer.from('{"id":"payout_1","status":"paid"}'.repeat(100))
  const noise = Buffer.from(newSealingKey())
  expect(await sizes(true, text)).toBeLessThan((await sizes(false, text)) / 4)
  expect(await sizes(true, noise)).toBeLessThanOrEqual(await sizes(false, noise))
})

describe('what the inner store has', () => {
  test('is passed on, and what it has not is not there', () => {
    const { begin, renew, complete, release } = mapStore(Date.now)
    const bare: Store = sealed({ begin, renew, complete, release }, { keys: [KEY] })
    expect([bare.inspect, bare.resolve, bare.list, bare.observe]).toEqual([undefined, undefined, undefined, undefined])
    class Counted {
      #count = 0
      readonly label = 'counted'
      begin = begin
      renew = renew
      complete = complete
      release = release
      count(): number {
        return ++this.#count
      }
    }
    const store = sealed(new Counted(), { keys: [KEY] })
    expect([store.count(), store.count(), store.label]).toEqual([1, 2, 'counted'])
    expect(store).toBeInstanceOf(Counted)
  })
})
