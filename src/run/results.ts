import { Buffer } from 'node:buffer'
import { type Answer, IdempotencyError, inItsWords, kindOf } from '../core/index.js'
import { looseJson } from './json.js'

/** Turns results into text or bytes and back, where they are not JSON. Both are synchronous. */
export interface ResultCodec<Result, Encoded extends string | Uint8Array> {
  readonly encode: (result: Result) => Encoded
  /** Is given what `encode` returned: bytes as a Buffer of its own. */
  readonly decode: (encoded: Encoded) => Result
}

/** A codec of whatever results. */
export interface AnyCodec {
  readonly encode: (result: never) => string | Uint8Array
  readonly decode: (encoded: never) => unknown
}

/** What a run ends with. */
export interface KeptResult {
  /** As it is stored. */
  readonly answer: Answer
  /** As whoever called gets it: what a repeat will be given, or, where it is not kept, as the function returned it. */
  readonly result: unknown
}

/** Results as they are stored, and as they are read again. */
export class Results {
  readonly #codec: AnyCodec
  readonly #isJson: boolean
  readonly #maxAnswerBytes: number

  constructor(codec: AnyCodec | undefined, maxAnswerBytes: number) {
    this.#codec = codec ?? AS_JSON
    this.#isJson = codec === undefined
    this.#maxAnswerBytes = maxAnswerBytes
  }

  /** @throws what `encode` or `decode` throws, or an error that says why the result cannot be kept. */
  kept(result: unknown): KeptResult {
    const encoded: unknown = this.#codec.encode(result as never)
    if (typeof encoded !== 'string' && !(encoded instanceof Uint8Array)) {
      throw new TypeError(`\`encode\` must return a string or bytes, not ${kindOf(encoded)}`)
    }
    // A copy: bytes stay their owner's.
    const body = Buffer.from(encoded as string)
    if (body.byteLength > this.#maxAnswerBytes) {
      throw new RangeError(`it takes ${body.byteLength} bytes, more than maxAnswerBytes (${this.#maxAnswerBytes})`)
    }
    const text = this.#isJson ? JSON_TYPE : TEXT_TYPE
    const answer = { ...NOT_KEPT, headers: [typeof encoded === 'string' ? text : BYTES_TYPE], body }
    return { answer, result: this.#decoded(answer) }
  }

  /** @throws IdempotencyError `decode_failed`: the record stays as it is. */
  read(answer: Answer): unknown {
    try {
      return this.#decoded(answer)
    } catch (cause) {
      throw new IdempotencyError(
        'decode_failed',
        `A stored result could not be decoded${inItsWords(cause)}. Nothing ran, and its record stands: let \`decode\` read what ` +
          'each earlier version has encoded, for as long as `retentionMs`.',
        { cause },
      )
    }
  }

  #decoded({ headers, body }: Answer): unknown {
    const bytes = Buffer.from(body as Uint8Array)
    const isBytes = headers.some(([, value]) => value === BYTES_TYPE[1])
    return this.#codec.decode((isBytes ? bytes : bytes.toString()) as never)
  }
}

/** A result as it is stored where it was not kept. The status is a success to whoever looks at the record. */
export const NOT_KEPT: Answer = { status: 200, statusMessage: '', headers: [], body: null }

/** Frozen within a major version: what an earlier one has stored is read by it. */
const JSON_TYPE = ['Content-Type', 'application/json'] as const
const TEXT_TYPE = ['Content-Type', 'text/plain; charset=utf-8'] as const
const BYTES_TYPE = ['Content-Type', 'application/octet-stream'] as const

/** No JSON text is empty: that stands for `undefined`. */
const AS_JSON: AnyCodec = {
  encode: looseJson,
  decode: (text: string) => (text === '' ? undefined : JSON.parse(text)),
}
