import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClaimTrace, CommandTrace, EventTrace } from '../core/index.js'

/** Receives what the engines of the process publish. */
export interface Listener {
  claimStarted(claim: ClaimTrace): void
  /** The claim's result is known. */
  claimEnded(claim: ClaimTrace): void
  commandStarted(command: CommandTrace): void
  /** The command's outcome is known. */
  commandEnded(command: CommandTrace): void
  happened(event: EventTrace): void
}

/** Subscribes a listener to everything. Returns a function that unsubscribes it. */
export function listen(listener: Listener): () => void {
  const claimEnded = whenKnown((claim: ClaimTrace) => listener.claimEnded(claim))
  const commandEnded = whenKnown((command: CommandTrace) => listener.commandEnded(command))
  const heard: readonly (readonly [channel: string, hear: (message: unknown) => void])[] = [
    ['tracing:once-per-key:claim:start', (message) => listener.claimStarted(message as ClaimTrace)],
    ['tracing:once-per-key:claim:end', claimEnded],
    ['tracing:once-per-key:claim:asyncEnd', claimEnded],
    ['tracing:once-per-key:command:start', (message) => listener.commandStarted(message as CommandTrace)],
    ['tracing:once-per-key:command:end', commandEnded],
    ['tracing:once-per-key:command:asyncEnd', commandEnded],
    ['once-per-key:event', (message) => listener.happened(message as EventTrace)],
  ]
  for (const [channel, hear] of heard) subscribe(channel, hear)
  return () => {
    for (const [channel, hear] of heard) unsubscribe(channel, hear)
  }
}

/** If the result is asynchronous, it is not known at `end` yet: `asyncEnd` follows. */
function whenKnown<Message extends { readonly outcome?: string }>(hear: (message: Message) => void) {
  return (message: unknown): void => {
    if ((message as Message).outcome !== undefined) hear(message as Message)
  }
}
