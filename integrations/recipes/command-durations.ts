import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { CommandTrace } from 'once-per-key/core'
import { Histogram, type Registry } from 'prom-client'

/** Measures each command to the store, of all engines of the process. Returns a function that stops it. */
export function measureCommands(registry: Registry): () => void {
  const durations = new Histogram({
    name: 'idempotency_store_command_duration_seconds',
    help: 'How long the store took to reply to a command, or until it failed or timed out.',
    labelNames: ['command', 'outcome'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10],
    registers: [registry],
  })
  const startedAt = new WeakMap<CommandTrace, number>()

  const started = (command: CommandTrace): void => void startedAt.set(command, performance.now())
  const ended = (command: CommandTrace): void => {
    const since = startedAt.get(command)
    // Without an outcome it is waited for, and `asyncEnd` follows.
    if (since === undefined || command.outcome === undefined) return
    durations.observe({ command: command.command, outcome: command.outcome }, (performance.now() - since) / 1_000)
  }

  const listeners = { start: started, end: ended, asyncEnd: ended }
  const channels = Object.entries(listeners).map(
    ([phase, listener]) =>
      [`tracing:once-per-key:command:${phase}`, (message: unknown) => listener(message as CommandTrace)] as const,
  )
  for (const [name, listener] of channels) subscribe(name, listener)
  return () => {
    for (const [name, listener] of channels) unsubscribe(name, listener)
  }
}
