import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Check } from '../checks.js'
import { Pulse } from '../limits/pulse.js'
import type { Account } from './journal.js'
import type { ServerName } from './mounts.js'

/** What the service's process tells. */
export type Told =
  | { readonly type: 'ready'; readonly ports: Readonly<Record<ServerName, number>> }
  | { readonly type: 'began' | 'left'; readonly request: string }
  | { readonly type: 'violated'; readonly check: Check; readonly request: string; readonly story: string }
  | { readonly type: 'closing' }
  | { readonly type: 'closed'; readonly account: Account; readonly resources: readonly string[] }

/** What it is told. */
export type Order = { readonly type: 'release'; readonly request: string } | { readonly type: 'close' }

export interface Service {
  readonly pulse: Pulse
  readonly ports: Readonly<Record<ServerName, number>>
  /** Resolves when the handler of a gated request has begun. */
  began(request: string): Promise<unknown>
  /** Resolves when the service knows that its client has left. */
  left(request: string): Promise<unknown>
  release(request: string): void
  /** Stops listening; resolves when it has begun to. */
  close(): Promise<unknown>
  /** Resolves with what it has seen, once all is done. */
  readonly closed: Promise<Extract<Told, { type: 'closed' }>>
  readonly exited: Promise<number | string>
  hasExited(): boolean
  /** The last that it wrote. */
  lastWords(): string
  kill(): void
}

const LAST_WORDS = 2_000

type Violated = Extract<Told, { type: 'violated' }>

export async function startService(onViolation: (violated: Violated) => void): Promise<Service> {
  const child = fork(fileURLToPath(new URL('./fuzz-service.js', import.meta.url)), [], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    execArgv: ['--enable-source-maps'],
  })
  let words = ''
  child.stderr?.on('data', (bytes: Buffer) => {
    words = `${words}${bytes}`.slice(-LAST_WORDS)
  })
  const exited = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'))
  })
  const heard = listenTo(child, onViolation)
  const failed = exited.then((end) => Promise.reject(new Error(`The service did not start: ${end} ${words}`)))
  const ready = await Promise.race([heard('ready'), failed])
  failed.catch(() => {})

  return {
    pulse: new Pulse(child),
    ports: (ready as Extract<Told, { type: 'ready' }>).ports,
    began: (request) => heard(`began ${request}`),
    left: (request) => heard(`left ${request}`),
    release: (request) => order(child, { type: 'release', request }),
    close() {
      order(child, { type: 'close' })
      return heard('closing')
    },
    closed: heard('closed') as Promise<Extract<Told, { type: 'closed' }>>,
    exited,
    hasExited: () => child.exitCode !== null || child.signalCode !== null,
    lastWords: () => words,
    kill: () => void child.kill('SIGKILL'),
  }
}

function order(child: ChildProcess, message: Order): void {
  if (child.connected) child.send(message)
}

/** Messages by name, past or to come. */
function listenTo(child: ChildProcess, onViolation: (violated: Violated) => void): (name: string) => Promise<Told> {
  const waiting = new Map<string, { heard: Promise<Told>; tell: (message: Told) => void }>()
  const named = (name: string) => {
    const known = waiting.get(name)
    if (known !== undefined) return known
    let tell = (_: Told) => {}
    const heard = new Promise<Told>((resolve) => {
      tell = resolve
    })
    const one = { heard, tell }
    waiting.set(name, one)
    return one
  }
  child.on('message', (message: Told | string) => {
    if (typeof message === 'string') return
    if (message.type === 'violated') return onViolation(message)
    named('request' in message ? `${message.type} ${message.request}` : message.type).tell(message)
  })
  return (name) => named(name).heard
}
