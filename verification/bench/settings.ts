/** What a reader needs: without names. */
const EVERYDAY = ['work', 'first', 'replay'] as const

/** `others`: first requests and replays of all variants, other clients and other packages too. */
export const SECTIONS = [
  ...EVERYDAY,
  ...(['others', 'latency', 'memory', 'postgres', 'mysql', 'sqlite'] as const),
] as const

export type Section = (typeof SECTIONS)[number]

export interface Settings {
  /** The major versions of Node on which traffic is measured; absent: the one that runs the benchmark. */
  readonly nodes?: readonly number[]
  readonly sections: readonly Section[]
  readonly rounds: number
  /** How long a variant is measured in one round. */
  readonly seconds: number
  /** The same where a lone client waits. */
  readonly latencySeconds: number
  /** Before the first round, so that the engine has compiled what runs often. */
  readonly warmUpRequests: number
  /** It ends in this time, with fewer rounds if need be. */
  readonly minutes: number
}

const FULL: Settings = {
  sections: EVERYDAY,
  nodes: [24, 26],
  rounds: 7,
  seconds: 1.6,
  latencySeconds: 0.8,
  warmUpRequests: 40_000,
  minutes: 9,
}

const { nodes: _, ...ON_THIS_NODE } = FULL

/** To see that it works; its figures say little. */
const QUICK: Settings = {
  ...ON_THIS_NODE,
  rounds: 2,
  seconds: 0.4,
  latencySeconds: 0.25,
  warmUpRequests: 1_000,
}

/** Only these variants, by their names and with what they are compared with; absent: all. */
export function variantNamesFrom(env: NodeJS.ProcessEnv): readonly string[] | undefined {
  return env.BENCH_VARIANTS?.split(',')
}

/**
 * `npm run bench -- --quick first replay`: the named sections, or what a reader needs; BENCH_ROUNDS, BENCH_SECONDS,
 * BENCH_WARM_UP (in requests) and BENCH_MINUTES change how often and how long, BENCH_NODES (`24,26`) on which Nodes, BENCH_VARIANTS
 * (`bare,ours-memory`) of which variants traffic is measured, and BENCH_EARLIER (an `npm pack` of an earlier version) adds that.
 */
export function settingsFrom(args: readonly string[], env: NodeJS.ProcessEnv): Settings {
  const names = args.filter((arg) => arg !== '--quick')
  for (const name of names) {
    if (!isSection(name)) throw new RangeError(`No section "${name}". There are: ${SECTIONS.join(', ')}; and --quick.`)
  }
  const base = args.includes('--quick') ? QUICK : FULL
  const seconds = numberFrom(env.BENCH_SECONDS, base.seconds)
  const nodes = env.BENCH_NODES?.split(',').map((version) => numberFrom(version, 0))
  return {
    ...base,
    ...(nodes && { nodes }),
    sections: names.length === 0 ? base.sections : names.filter(isSection),
    minutes: numberFrom(env.BENCH_MINUTES, base.minutes),
    rounds: numberFrom(env.BENCH_ROUNDS, base.rounds),
    seconds,
    warmUpRequests: numberFrom(env.BENCH_WARM_UP, base.warmUpRequests),
    latencySeconds: (base.latencySeconds * seconds) / base.seconds,
  }
}

/** Whether other packages are measured in it. */
export function hasPeers(section: Section): boolean {
  return ['work', 'first', 'replay', 'others', 'memory'].includes(section)
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
