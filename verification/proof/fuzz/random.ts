import { mulberry32 } from '../mulberry32.js'

/** Choices that the same seeds make again. */
export interface Random {
  /** A whole number, at least 0 and less than `limit`. */
  below(limit: number): number
  chance(share: number): boolean
  pick<T>(list: readonly T[]): T
  shuffled<T>(list: readonly T[]): T[]
  bytes(length: number): Buffer
}

/** Started from all the seeds: near seeds give unrelated choices. */
export function randomOf(...seeds: readonly number[]): Random {
  let state = 0x9e3779b9
  for (const seed of seeds) state = Math.imul(state ^ seed, 0x85ebca6b) ^ (state >>> 13)
  const next = mulberry32(state)
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    below,
    chance: (share) => next() < share,
    pick<T>(list: readonly T[]): T {
      if (list.length === 0) throw new RangeError('Nothing to choose from')
      return list[below(list.length)] as T
    },
    shuffled(list) {
      const left = [...list]
      return list.map(() => left.splice(below(left.length), 1)[0] as (typeof list)[number])
    },
    bytes: (length) => Buffer.from(Array.from({ length }, () => below(256))),
  }
}
