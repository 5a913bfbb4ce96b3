import type { Choices } from './choices.js'
import type { Calm } from './one-fault-at-a-time.js'

/** Something that goes wrong, and is over when its promise resolves. */
export interface Fault {
  readonly name: string
  strike(choices: Choices): Promise<unknown>
}

/** Faults that come one after the other, with pauses between them. Several lanes go on at once. */
export interface FaultLane {
  readonly name: string
  readonly faults: readonly Fault[]
  readonly leastPauseMs: number
  readonly mostPauseMs: number
}

/** Deals the faults of each lane like cards, so that each comes soon. Resolves when the last is over. */
export async function strike(
  lanes: readonly FaultLane[],
  isOpen: () => boolean,
  calm: Calm,
  choices: Choices,
  count: (name: string) => void,
): Promise<void> {
  await Promise.all(lanes.map((lane) => strikeInTurn(lane, isOpen, calm, choices.of(lane.name), count)))
}

async function strikeInTurn(
  { faults, leastPauseMs, mostPauseMs }: FaultLane,
  isOpen: () => boolean,
  calm: Calm,
  choices: Choices,
  count: (name: string) => void,
): Promise<void> {
  let deck: Fault[] = []
  while (true) {
    await pause(choices.between(leastPauseMs, mostPauseMs))
    await calm.over()
    if (!isOpen()) return
    if (deck.length === 0) deck = choices.shuffled(faults)
    const fault = deck.pop() as Fault
    // What a fault did not meet, it did not do.
    if ((await fault.strike(choices)) !== false) count(fault.name)
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
