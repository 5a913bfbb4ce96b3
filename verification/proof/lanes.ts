/** Runs jobs in their order, so many at a time. */
export async function inLanes(lanes: number, jobs: readonly (() => Promise<void>)[]): Promise<void> {
  let next = 0
  async function lane(): Promise<void> {
    while (next < jobs.length) await jobs[next++]?.()
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}
