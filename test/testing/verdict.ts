import type { Store } from 'once-per-key/core'
import { storeLaws } from 'once-per-key/testing'

export type Open = (now: () => number) => Store

/** Runs the suite, or some of it, as a runner would, and tells which laws held and why the others did not. */
export async function verdictOn(
  open: Open,
  options?: Parameters<typeof storeLaws>[2],
  isRun: (law: string) => boolean = () => true,
) {
  const laws = new Map<string, () => Promise<void>>()
  const openStore = async () => {
    let now = 1
    const advance = (ms: number) => {
      now += ms
    }
    return { store: open(() => now), advance }
  }
  storeLaws((name, fn) => laws.set(name, fn), openStore, options)

  const broken = new Map<string, unknown>()
  for (const [name, fn] of laws) if (isRun(name)) await fn().catch((error: unknown) => broken.set(name, error))
  return { laws: [...laws.keys()], broken }
}
