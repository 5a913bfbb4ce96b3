/** Mulberry32 (Tommy Ettinger, public domain): fractions from 0 to below 1, the same ones from the same state. */
export function mulberry32(state: number): () => number {
  let bits = state | 0
  return () => {
    bits = (bits + 0x6d2b79f5) | 0
    return (mixed(bits) >>> 0) / 2 ** 32
  }
}

/** Spreads near numbers far apart. */
export function mixed(bits: number): number {
  let mix = Math.imul(bits ^ (bits >>> 15), bits | 1)
  mix ^= mix + Math.imul(mix ^ (mix >>> 7), mix | 61)
  return mix ^ (mix >>> 14)
}
