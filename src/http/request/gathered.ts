/**
 * Bytes that arrive in pieces, as one block. Each is copied a bounded number of times, and a piece of one byte takes one byte: an array of
 * the pieces would take a hundred.
 */
export class Gathered {
  /** As long as there is one piece, that piece; never written to then. */
  #block: Uint8Array = NOTHING
  #byteLength = 0

  get byteLength(): number {
    return this.#byteLength
  }

  add(piece: Uint8Array): void {
    const byteLength = this.#byteLength + piece.byteLength
    if (this.#byteLength === 0) this.#block = piece
    else {
      if (byteLength > this.#block.byteLength) this.#grow(Math.max(byteLength, 2 * this.#block.byteLength))
      this.#block.set(piece, this.#byteLength)
    }
    this.#byteLength = byteLength
  }

  /** All of them. Nothing may be added behind it. */
  whole(): Uint8Array {
    return this.#block.byteLength === this.#byteLength ? this.#block : this.#block.slice(0, this.#byteLength)
  }

  #grow(byteLength: number): void {
    const block = new Uint8Array(byteLength)
    block.set(this.#block.subarray(0, this.#byteLength))
    this.#block = block
  }
}

const NOTHING = new Uint8Array(0)

/**
 * A chunk of a body's stream. Text counts as its UTF-8, as servers send it.
 *
 * @throws TypeError for other values, as reading such a body does by the Fetch standard.
 */
export function bytesIn(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk
  if (typeof chunk === 'string') return UTF_8.encode(chunk)
  throw new TypeError(`A body's stream must yield bytes (Uint8Array) or text, not values of type ${typeof chunk}.`)
}

const UTF_8 = new TextEncoder()

/** A body's bytes; `null`: there are more than so many. Rejects with what its source fails with. */
export async function readAtMost(body: ReadableStream<Uint8Array>, mostBytes: number): Promise<Uint8Array | null> {
  const reader = body.getReader()
  const read = new Gathered()
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    read.add(bytesIn(next.value))
    if (read.byteLength <= mostBytes) continue
    reader.cancel().catch(() => {}) // It resolves when the request itself is read or cancelled.
    return null
  }
  return read.whole()
}
