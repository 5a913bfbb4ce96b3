import { Buffer } from 'node:buffer'
import type { Header } from './content.js'
import type { Random } from './random.js'

type HeaderBytes = readonly [name: string, value: string | Buffer]

/** A request in bytes. The framing is left to chance: a length, or chunks of odd sizes with extensions and trailers. */
export function framed(
  line: string,
  headers: readonly HeaderBytes[],
  body: Buffer,
  framing: 'length' | Random,
): Buffer {
  const head = (more: readonly HeaderBytes[]) =>
    Buffer.concat([
      Buffer.from(`${line}\r\n`, 'latin1'),
      ...[...headers, ...more].flatMap(([name, value]) => [
        Buffer.from(`${name}: `),
        typeof value === 'string' ? Buffer.from(value, 'latin1') : value,
        Buffer.from('\r\n'),
      ]),
      Buffer.from('\r\n'),
    ])
  if (framing !== 'length' && body.length > 0 && framing.chance(0.25)) {
    return Buffer.concat([head([['Transfer-Encoding', 'chunked']]), ...chunksOf(body, framing)])
  }
  const isSilent = body.length === 0 && (framing === 'length' || framing.chance(0.5))
  return Buffer.concat([head(isSilent ? [] : [['Content-Length', `${body.length}`]]), body])
}

function chunksOf(body: Buffer, random: Random): Buffer[] {
  const pieces: Buffer[] = []
  const largest = Math.max(1, Math.ceil(body.length / (1 + random.below(20))))
  for (let at = 0; at < body.length; ) {
    const piece = body.subarray(at, at + 1 + random.below(largest))
    const size = random.pick([(hex: string) => hex, (hex: string) => hex.toUpperCase(), (hex: string) => `000${hex}`])
    const extension = random.pick(['', '', ';a=b', ';name="quoted value"'])
    pieces.push(Buffer.from(`${size(piece.length.toString(16))}${extension}\r\n`), piece, Buffer.from('\r\n'))
    at += piece.length
  }
  // A key among the trailers is no key.
  return [...pieces, Buffer.from(`0\r\n${random.pick(['', '', 'X-Trailer: 1\r\n', 'Idempotency-Key: late\r\n'])}\r\n`)]
}

/** Headers that mean nothing to a handler. */
export function dressing(random: Random): readonly Header[] {
  return random.shuffled(DRESSING).slice(0, random.below(5))
}

const DRESSING: readonly Header[] = [
  ['X-Long', 'x'.repeat(4_000)],
  ['Cookie', 'a=1; session=stolen; a=2'],
  ['Cookie', 'b=\xff'],
  ['X-Twice', '1'],
  ['X-Twice', '2'],
  ['X-Latin', 'caf\xe9'],
  ['__proto__', 'x'],
  ['constructor', 'x'],
  ['Idempotent-Replayed', 'true'],
  ['X-Idempotency-Key', 'not-the-key'],
  ['Idempotency-Keys', 'nor-this'],
  ['Accept', '*/*;q=0.1, application/problem+json'],
  ['Accept-Encoding', 'gzip, br'],
  ['TE', 'trailers'],
  ['Connection', 'keep-alive'],
  ['X-Forwarded-For', '127.0.0.1, evil'],
  ['X-HTTP-Method-Override', 'GET'],
  ['Date', 'yesterday'],
  ['Authorization', 'Bearer x'],
  ['X-Empty', ''],
]
