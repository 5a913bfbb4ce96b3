/** What a seed chooses: the same seed, the same choices, in the same order. */
export interface Choices {
  /** A whole number, both ends included. */
  between(least: number, most: number): number
  chance(share: number): boolean
  one<T>(items: readonly T[]): T
  shuffled<T>(items: readonly T[]): T[]
  /** Choices of its own for a part: how fast the others go does not change them. */
  of(part: string): Choices
}

export function choicesOf(seed: number, part = ''): Choices {
  let state = hashOf(`${seed} ${part}`)

  /** Mulberry32: a number from 0 to 1. */
  function next(): number {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }

  const between = (least: number, most: number) => least + Math.floor(next() * (most - least + 1))

  return {
    between,
    chance: (share) => next() < share,
    one: <T>(items: readonly T[]) => items[between(0, items.length - 1)] as T,
    shuffled(items) {
      const left = [...items]
      return items.map(() => left.splice(between(0, left.length - 1), 1)[0] as (typeof items)[number])
    },
    of: (name) => choicesOf(seed, `${part}/${name}`),
  }
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193)
  return hash | 0
}
