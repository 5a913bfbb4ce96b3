import { createHash } from 'node:crypto'

/** Choices that look like chance, and come from a seed. */
export interface Choices {
  /** An integer, both ends included. */
  between(least: number, most: number): number
  oneOf<Item>(items: readonly Item[]): Item
  /** `true` in so many of a hundred cases. */
  happens(percent: number): boolean
}

/** The same seed and subject make the same choices, whatever else is chosen before or meanwhile. */
export function choicesOf(seed: number, subject: string): Choices {
  let drawn = 0
  const fraction = () => createHash('sha256').update(`${seed} ${subject} ${drawn++}`).digest().readUInt32BE() / 2 ** 32
  const between = (least: number, most: number) => least + Math.floor(fraction() * (most - least + 1))
  return {
    between,
    oneOf: <Item>(items: readonly Item[]) => items[between(0, items.length - 1)] as Item,
    happens: (percent) => fraction() * 100 < percent,
  }
}
