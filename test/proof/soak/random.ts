/** Choices that a seed repeats. */
export interface Random {
  /** From 0 to below `end`. */
  below(end: number): number
  /** One of the choices, each as often as its weight says. */
  pick<Choice>(weights: readonly (readonly [choice: Choice, weight: number])[]): Choice
}

/** mulberry32: 32 bits of state. */
export function randomFrom(seed: number): Random {
  let state = seed | 0

  function below(end: number): number {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * end)
  }

  return {
    below,
    pick(weights) {
      let left = below(weights.reduce((sum, [, weight]) => sum + weight, 0))
      for (const [choice, weight] of weights) {
        if (left < weight) return choice
        left -= weight
      }
      throw new Error('There is nothing to choose from.')
    },
  }
}
