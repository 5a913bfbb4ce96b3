import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * What this process really holds, in bytes, after garbage was collected: the heap, and the bytes outside of it that belong
 * to its objects. Garbage is swept in the background, late on a busy machine: so until nothing more goes.
 */
export async function footprint(): Promise<number> {
  let held = Number.POSITIVE_INFINITY
  for (let round = 0; round < MOST_ROUNDS; round++) {
    collectGarbage()
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    const { heapUsed, external } = process.memoryUsage()
    const gone = held - (heapUsed + external)
    held = heapUsed + external
    if (gone < LITTLE_BYTES) break
  }
  return held
}

const MOST_ROUNDS = 20
const PAUSE_MS = 10
const LITTLE_BYTES = 64 * 1_024

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')
