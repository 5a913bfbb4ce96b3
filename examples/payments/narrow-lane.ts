/** Lets a number of works run at once; the others wait for their turn, in order. */
export function narrowLane(mostAtOnce: number): <T>(work: () => Promise<T>) => Promise<T> {
  let free = mostAtOnce
  const waiting: (() => void)[] = []

  return async (work) => {
    if (free > 0) free--
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next === undefined) free++
      else next()
    }
  }
}
