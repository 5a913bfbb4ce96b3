import { spawn } from 'node:child_process'

/** What one request makes. */
export interface Cost {
  /** Allocated by V8. */
  readonly bytes: number
  readonly promises: number
  readonly timers: number
  /** Of Redis, without what its scripts call. */
  readonly commands: number
  readonly reads: number
  /** To Postgres: there and back. */
  readonly trips: number
}

/** Where the services find their servers. */
export type Servers = Readonly<Partial<Record<'REDIS_PORT' | 'POSTGRES_URL', string>>>

/** `passing`: without a key. */
export type Phase = 'first' | 'replay' | 'passing'

const MAJOR = Number.parseInt(process.versions.node, 10)

/** V8 compiles early, so that few requests come before. That of Node 22 compiles Express wrongly below 1,000. */
const EARLY: readonly string[] =
  MAJOR < 22
    ? ['--interrupt-budget=6758']
    : MAJOR < 24
      ? ['--invocation-count-for-turbofan=1000']
      : ['--invocation-count-for-maglev=40', '--invocation-count-for-turbofan=300']

/** All of V8 on one thread, so that each run is alike. */
const FLAGS = ['--expose-gc', '--single-threaded', ...EARLY]

/** In MiB: room for all that is counted, so that no collection falls into it. If one does, there is more the next time. */
const YOUNG_SPACES = [64, 128, 256]

/** What the requests of services cost, each measured once, in a process of its own: counts, which no load changes. */
export class Measured {
  readonly #program: string
  readonly #servers: Servers
  readonly #known = new Map<string, Promise<unknown>>()

  constructor(program: string, servers: Servers) {
    this.#program = program
    this.#servers = servers
  }

  cost(service: string, phase: Phase): Promise<Cost> {
    return this.#once<Cost>(service, phase, 'cost')
  }

  /** Of one, beside a request of another service; what is unprotected replays nothing. */
  async costOver(floor: string, service: string, phase: Phase): Promise<Cost> {
    const own = await this.cost(service, phase)
    const least = await this.cost(floor, phase === 'replay' && !floor.includes(',') ? 'first' : phase)
    const over = Object.entries(own).map(([name, count]) => [name, count - least[name as keyof Cost]])
    return Object.fromEntries(over)
  }

  /** Bytes that a record keeps. */
  async kept(service: string): Promise<number> {
    return (await this.#once<{ readonly kept: number }>(service, 'first', 'kept')).kept
  }

  #once<Result>(...args: readonly [service: string, phase: Phase, measure: string]): Promise<Result> {
    const name = args.join()
    const known = this.#known.get(name) ?? this.#measure(args)
    this.#known.set(name, known)
    return known as Promise<Result>
  }

  async #measure(args: readonly string[]): Promise<unknown> {
    for (const youngSpace of YOUNG_SPACES) {
      const said = JSON.parse(await this.#run(args, youngSpace))
      if (said.collected !== true) return said
    }
    throw new Error(`${args.join(' ')}: a collection fell into what is counted, each time.`)
  }

  async #run(args: readonly string[], youngSpace: number): Promise<string> {
    const { NODE_OPTIONS: _, NODE_V8_COVERAGE: __, ...inherited } = process.env
    const young = [`--min-semi-space-size=${youngSpace}`, `--max-semi-space-size=${youngSpace}`]
    const child = spawn(process.execPath, [...FLAGS, ...young, this.#program, ...args], {
      env: { ...inherited, ...this.#servers, NODE_ENV: 'production' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let said = ''
    child.stdout.setEncoding('utf8').on('data', (text) => {
      said += text
    })
    const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
    if (code !== 0) throw new Error(`${args.join(' ')} ended with code ${code}.`)
    return said
  }
}
