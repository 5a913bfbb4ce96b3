import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Pulse } from '../limits/pulse.js'
import { instant } from './journal.js'
import type { ServiceSettings } from './service-settings.js'

/** Beside the program that this is built into. */
const PROGRAM = fileURLToPath(new URL('./chaos-service.js', import.meta.url))
/** Behind its own limit, a service is ended by itself. */
const EXIT_BEATS = 400

/** The services, which are killed, stopped and started again. */
export interface Fleet {
  readonly size: number
  readonly journals: readonly string[]
  /** Where a client finds a service now. */
  place(service: number): Place
  /** Of the process that is a service now. */
  pulse(service: number): Pulse
  /** Whether the process that a client was sent to is gone. */
  hasDied(place: Place): boolean
  /** Whether it was stopped at any time between two instants. */
  wasStopped(service: number, from: number, to: number): boolean
  /** Kills it (-9), and resolves when another process has taken its place. */
  kill(service: number): Promise<void>
  /** SIGSTOP, and SIGCONT after a while; `false`: it is being started again. */
  stop(service: number, ms: number): Promise<boolean>
  /** SIGTERM to all. Resolves to those that have not ended by themselves, with 0. */
  shutDown(): Promise<string[]>
  /** Kills what is left. */
  end(): void
}

export interface Place {
  readonly service: number
  readonly port: number
  readonly process: string
}

interface Service {
  readonly child: ChildProcess
  readonly pulse: Pulse
  readonly place: Place
}

type Common = Omit<ServiceSettings, 'name' | 'journal' | 'redisPorts'>

export async function startFleet(
  folder: string,
  portsOf: readonly (readonly number[])[],
  common: Common,
): Promise<Fleet> {
  const children = new Set<ChildProcess>()
  const dead = new Set<string>()
  const stops: { service: number; from: number; to: number }[] = []
  const journals = portsOf.map((_, service) => join(folder, `service-${service}.jsonl`))
  for (const journal of journals) writeFileSync(journal, '')
  const services = await Promise.all(portsOf.map((_, service) => start(service, 0)))

  async function start(service: number, generation: number): Promise<Service> {
    const name = `${service}.${generation}`
    const settings = { ...common, name, journal: journals[service], redisPorts: portsOf[service] }
    const errors = openSync(join(folder, `service-${service}.stderr`), 'a')
    const child = spawn(process.execPath, [PROGRAM, JSON.stringify(settings)], {
      stdio: ['ignore', 'ignore', errors, 'ipc'],
    })
    children.add(child)
    const ended = once(child, 'exit').then(() => children.delete(child))
    const told = await Promise.race([once(child, 'message'), ended])
    if (!Array.isArray(told)) throw new Error(`Service ${name} ended before it was ready: see ${folder}`)
    return { child, pulse: new Pulse(child), place: { service, port: told[0].port, process: name } }
  }

  function at(service: number): Service {
    const found = services[service]
    if (found === undefined) throw new RangeError(`There is no service ${service}`)
    return found
  }

  return {
    size: portsOf.length,
    journals,
    place: (service) => at(service).place,
    pulse: (service) => at(service).pulse,
    hasDied: ({ process }) => dead.has(process),
    wasStopped: (service, from, to) =>
      stops.some((stop) => stop.service === service && stop.from < to && from < stop.to),
    async kill(service) {
      const { child, place } = at(service)
      dead.add(place.process)
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
      services[service] = await start(service, generationOf(place) + 1)
    },
    async stop(service, ms) {
      const { child, place } = at(service)
      if (dead.has(place.process)) return false
      const stop = { service, from: instant(), to: Number.POSITIVE_INFINITY }
      stops.push(stop)
      child.kill('SIGSTOP')
      await new Promise((resolve) => setTimeout(resolve, ms))
      child.kill('SIGCONT')
      stop.to = instant()
      return true
    },
    async shutDown() {
      const ends = services.map(async ({ child, pulse, place }) => {
        if (child.exitCode !== null) return [`${place.process}: it had ended before, with ${child.exitCode}`]
        const exited = once(child, 'exit')
        child.kill('SIGTERM')
        const [code, signal] = await pulse.within(EXIT_BEATS, exited).catch(() => ['still running'])
        return code === 0 ? [] : [`${place.process}: ${code ?? signal}`]
      })
      return (await Promise.all(ends)).flat()
    },
    end() {
      for (const child of children) child.kill('SIGKILL')
    },
  }
}

function generationOf({ process }: Place): number {
  return Number(process.split('.')[1])
}
