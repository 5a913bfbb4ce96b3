import { newSealingKey } from '../../adapters/sealed/keys.js'
import { readOptions } from '../../adapters/sealed/options.js'
import { openAnswer, sealAnswer } from '../../adapters/sealed/sealed-answer.js'
import type { Answer } from '../../src/core/index.js'

/** What sealing adds to an answer, in bytes and in microseconds of the process. */
const key = newSealingKey()
const ways = { 'as it is': false, compressed: true }
const HEADERS: Answer['headers'] = [['content-type', 'application/json; charset=utf-8']]
const of = { key: 'acme:order-1001', fingerprint: 'f'.repeat(64), place: '' }

console.log('An answer of JSON: bytes as they are stored, and microseconds to seal and to open it.\n')
console.log(['body', 'stored', 'seal', 'open', ''].map((title) => title.padStart(9)).join(' '))
for (const bytes of [100, 1_024, 16 * 1_024, 1_024 ** 2]) {
  const answer: Answer = { status: 201, statusMessage: '', headers: HEADERS, body: json(bytes) }
  for (const [way, compress] of Object.entries(ways)) {
    const options = readOptions({ keys: [key], compress })
    const sealed = sealAnswer(answer, of, options)
    const seals = microseconds(bytes, () => sealAnswer(answer, of, options))
    const opens = microseconds(bytes, () => openAnswer(sealed, of, options))
    const cells = [bytes, sealed.body?.byteLength ?? 0, seals.toFixed(1), opens.toFixed(1)]
    console.log(`${cells.map((cell) => String(cell).padStart(9)).join(' ')} ${way}`)
  }
}

/** Rows with an id and an amount of their own each. */
function json(bytes: number): Buffer {
  let text = ''
  for (let i = 0; text.length < bytes; i++) {
    const id = (i * 2_654_435_761).toString(36)
    text += `{"id":"payout_${id}","amount":${(i * 7_919) % 100_000},"currency":"EUR","status":"paid"},`
  }
  return Buffer.from(text.slice(0, bytes))
}

/** Compiled by then: the median of rounds, each of as many times as take some milliseconds. */
function microseconds(bytes: number, work: () => unknown): number {
  const times = Math.max(3, Math.round(200_000 / (bytes + 1_000)))
  for (let i = 0; i < 20 * times; i++) work()
  const rounds = Array.from({ length: 15 }, () => {
    const from = performance.now()
    for (let i = 0; i < times; i++) work()
    return ((performance.now() - from) * 1_000) / times
  })
  return rounds.toSorted((a, b) => a - b)[7] as number
}
