import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Pulse } from '../limits/pulse.js'

/** Services that are killed, stopped and started again. */
export interface Services {
  readonly size: number
  /** Where one of them is found now. */
  port(service: number): number
  /** Of the process that it is now. */
  pulse(service: number): Pulse
  /** Kills it (-9), and resolves when another process has taken its place. */
  kill(service: number): Promise<void>
  /** SIGSTOP, and SIGCONT after a while. */
  stop(service: number, ms: number): Promise<void>
  /** Returns how many have crashed by themselves. */
  end(): number
}

interface Running {
  readonly child: ChildProcess
  readonly port: number
  readonly pulse: Pulse
}

/** `program`: the name of a file beside the program that this is built into. */
export async function startServices(size: number, program: string, settings: object): Promise<Services> {
  const path = fileURLToPath(new URL(program, import.meta.url))
  let crashes = 0
  const running = await Promise.all(Array.from({ length: size }, start))
  const busy = new Set<number>()

  async function start(): Promise<Running> {
    const child = spawn(process.execPath, [path, JSON.stringify(settings)], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    // One that was killed has no code.
    child.once('exit', (code) => {
      if (code !== null) crashes++
    })
    const [{ port }] = await Promise.race([once(child, 'message'), tooEarlyEnd(child)])
    return { child, port, pulse: new Pulse(child) }
  }

  async function tooEarlyEnd(child: ChildProcess): Promise<never> {
    const [code] = await once(child, 'exit')
    throw new Error(`A service ended with ${code} before it listened; \`node ${path}\` says why.`)
  }

  function at(service: number): Running {
    return running[service] as Running
  }

  async function alone(service: number, work: () => Promise<void>): Promise<void> {
    if (busy.has(service)) return
    busy.add(service)
    await work().finally(() => busy.delete(service))
  }

  return {
    size,
    port: (service) => at(service).port,
    pulse: (service) => at(service).pulse,
    kill: (service) =>
      alone(service, async () => {
        const { child } = at(service)
        if (child.exitCode === null) {
          const exited = once(child, 'exit')
          child.kill('SIGKILL')
          await exited
        }
        running[service] = await start()
      }),
    stop: (service, ms) =>
      alone(service, async () => {
        const { child } = at(service)
        child.kill('SIGSTOP')
        await new Promise((resolve) => setTimeout(resolve, ms))
        child.kill('SIGCONT')
      }),
    end() {
      for (const { child } of running) child.kill('SIGKILL')
      return crashes
    },
  }
}
