import { mulberry32 } from '../mulberry32.js'

/** Choices that a seed repeats. */
export interface Random {
  /** From 0 to below `end`. */
  below(end: number): number
  /** One of the choices, each as often as its weight says. */
  pick<Choice>(weights: readonly (readonly [choice: Choice, weight: number])[]): Choice
}

export function randomFrom(seed: number): Random {
  const fraction = mulberry32(seed)
  const below = (end: number) => Math.floor(fraction() * end)

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
