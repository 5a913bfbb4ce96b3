/** Rejects when a promise takes longer: whatever hangs, the run goes on. */
export async function inTime<Value>(promise: Value | Promise<Value>, limitMs: number): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`There was no answer within ${limitMs} ms.`)), limitMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
