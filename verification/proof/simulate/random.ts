import { mixed, mulberry32 } from '../mulberry32.js'

/** Choices that a seed decides: the same seed takes the same ones. */
export interface Random {
  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number
  chance(probability: number): boolean
  pick<Choice>(choices: readonly Choice[]): Choice
}

export function randomOf(seed: number, stream: number): Random {
  const fraction = mulberry32(mixed(mixed(seed | 0) ^ mixed(stream + 0x51ed270b)))

  return {
    between: (least, most) => least + Math.floor(fraction() * (most - least + 1)),
    chance: (probability) => probability > 0 && fraction() < probability,
    pick: <Choice>(choices: readonly Choice[]) => choices[Math.floor(fraction() * choices.length)] as Choice,
  }
}
