import { mulberry32 } from '../mulberry32.js'

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
  const next = mulberry32(hashOf(`${seed} ${part}`))
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
