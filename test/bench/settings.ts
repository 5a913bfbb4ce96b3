export const SECTIONS = ['work', 'first', 'replay', 'latency', 'growth', 'memory', 'micro'] as const

export type Section = (typeof SECTIONS)[number]

export interface Settings {
  readonly sections: readonly Section[]
  readonly rounds: number
  /** How long a variant is measured in one round. */
  readonly seconds: number
  /** The same where it is measured at many sizes. */
  readonly growthSeconds: number
  /** Before the first round, so that the engine has compiled what runs often. */
  readonly warmUpSeconds: number
  readonly mostRecords: { readonly memory: number; readonly redis: number }
  /** How much is done in the same process. */
  readonly microOperations: number
}

const FULL: Settings = {
  sections: SECTIONS,
  rounds: 5,
  seconds: 1.6,
  growthSeconds: 0.8,
  warmUpSeconds: 4,
  mostRecords: { memory: 1_000_000, redis: 100_000 },
  microOperations: 20_000,
}

/** To see that it works; its figures say little. */
const QUICK: Settings = {
  ...FULL,
  rounds: 2,
  seconds: 0.4,
  growthSeconds: 0.25,
  warmUpSeconds: 0.3,
  mostRecords: { memory: 10_000, redis: 10_000 },
  microOperations: 2_000,
}

/**
 * `npm run bench -- --quick first replay`: the named sections, or all; BENCH_ROUNDS and BENCH_SECONDS change how often and
 * how long.
 */
export function settingsFrom(args: readonly string[], env: NodeJS.ProcessEnv): Settings {
  const names = args.filter((arg) => arg !== '--quick')
  for (const name of names) {
    if (!isSection(name)) throw new RangeError(`No section "${name}". There are: ${SECTIONS.join(', ')}; and --quick.`)
  }
  const base = args.includes('--quick') ? QUICK : FULL
  const seconds = numberFrom(env.BENCH_SECONDS, base.seconds)
  return {
    ...base,
    sections: names.length === 0 ? SECTIONS : names.filter(isSection),
    rounds: numberFrom(env.BENCH_ROUNDS, base.rounds),
    seconds,
    growthSeconds: (base.growthSeconds * seconds) / base.seconds,
  }
}

function isSection(name: string): name is Section {
  return (SECTIONS as readonly string[]).includes(name)
}

function numberFrom(text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise
  const value = Number(text)
  if (!(value > 0)) throw new RangeError(`Expected a number above 0, seen "${text}".`)
  return value
}
