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
