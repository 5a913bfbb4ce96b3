/** Choices that a seed decides: the same seed takes the same ones. */
export interface Random {
  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number
  chance(probability: number): boolean
  pick<Choice>(choices: readonly Choice[]): Choice
}

/** Mulberry32 (Tommy Ettinger, public domain): quick, and even enough to choose faults by. */
export function randomOf(seed: number, stream: number): Random {
  let state = mixed(mixed(seed | 0) ^ mixed(stream + 0x51ed270b))

  function fraction(): number {
    state = (state + 0x6d2b79f5) | 0
    return (mixed(state) >>> 0) / 2 ** 32
  }

  return {
    between: (least, most) => least + Math.floor(fraction() * (most - least + 1)),
    chance: (probability) => probability > 0 && fraction() < probability,
    pick: <Choice>(choices: readonly Choice[]) => choices[Math.floor(fraction() * choices.length)] as Choice,
  }
}

function mixed(bits: number): number {
  let mix = Math.imul(bits ^ (bits >>> 15), bits | 1)
  mix ^= mix + Math.imul(mix ^ (mix >>> 7), mix | 61)
  return mix ^ (mix >>> 14)
}
