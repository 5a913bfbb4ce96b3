import { Buffer } from 'node:buffer'
import {
  type Answer,
  describeCause,
  describeKind,
  encodeLooseJson,
  IdempotencyError,
  NOT_KEPT,
  parseJson,
} from '../core/index.js'

/** Converts results that are not JSON into text or bytes and back. Both functions are synchronous. */
export interface ResultCodec<Result, Encoded extends string | Uint8Array> {
  readonly encode: (result: Result) => Encoded
  /** Receives what `encode` returned; bytes as a separate Buffer. */
  readonly decode: (encoded: Encoded) => Result
}

export interface AnyCodec {
  readonly encode: (result: never) => string | Uint8Array
  readonly decode: (encoded: never) => unknown
}

export interface KeptResult {
  readonly answer: Answer
  /** The caller's form: what a repeat gets or, if the result is not kept, what the function returned. */
  readonly result: unknown
}

export class Results {
  readonly #codec: AnyCodec
  readonly #maxAnswerBytes: number

  constructor(codec: AnyCodec | undefined, maxAnswerBytes: number) {
    this.#codec = codec ?? AS_JSON
    this.#maxAnswerBytes = maxAnswerBytes
  }

  /** @throws what `encode` or `decode` throws, or an error that says why the result cannot be kept. */
  encodeResult(result: unknown): KeptResult {
    const encoded: unknown = this.#codec.encode(result as never)
    if (typeof encoded !== 'string' && !(encoded instanceof Uint8Array)) {
      Promise.resolve(encoded).catch(() => {}) // If it is a promise, its rejection must not end the process.
      throw new TypeError(`\`encode\` must return a string or bytes, not ${describeKind(encoded)}`)
    }
    // A copy, because the owner may modify the bytes.
    const body = Buffer.from(encoded as string)
    if (body.byteLength > this.#maxAnswerBytes) {
      throw new RangeError(`it takes ${body.byteLength} bytes, more than maxAnswerBytes (${this.#maxAnswerBytes})`)
    }
    const text = this.#codec === AS_JSON ? JSON_TYPE : TEXT_TYPE
    const answer = { ...NOT_KEPT, headers: [typeof encoded === 'string' ? text : BYTES_TYPE], body }
    return { answer, result: this.#decodeAnswer(answer) }
  }

  /** @throws IdempotencyError `decode_failed`: the record does not change. */
  read(answer: Answer): unknown {
    try {
      return this.#decodeAnswer(answer)
    } catch (cause) {
      throw new IdempotencyError(
        'decode_failed',
        `A stored result could not be decoded${describeCause(cause)}. Nothing ran, and its record stands: let \`decode\` read what ` +
          'each earlier version has encoded, for as long as `retentionMs`.',
        { cause },
      )
    }
  }

  #decodeAnswer({ headers, body }: Answer): unknown {
    const bytes = Buffer.from(body as Uint8Array)
    const isBytes = headers.some(([, value]) => value === BYTES_TYPE[1])
    return this.#codec.decode((isBytes ? bytes : bytes.toString()) as never)
  }
}

/** Frozen within a major version: later versions read what earlier ones stored. */
const JSON_TYPE = ['Content-Type', 'application/json'] as const
const TEXT_TYPE = ['Content-Type', 'text/plain; charset=utf-8'] as const
const BYTES_TYPE = ['Content-Type', 'application/octet-stream'] as const

/** JSON text is never empty, so an empty text represents `undefined`. */
const AS_JSON: AnyCodec = {
  encode: encodeLooseJson,
  decode: (text: string) => (text === '' ? undefined : parseJson(text)),
}
