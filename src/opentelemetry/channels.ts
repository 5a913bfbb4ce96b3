import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClaimTrace, CommandTrace, EventTrace } from '../core/index.js'

/** Hears what the engines of the process tell. */
export interface Listener {
  claimStarted(claim: ClaimTrace): void
  /** What it is told is known. */
  claimEnded(claim: ClaimTrace): void
  commandStarted(command: CommandTrace): void
  /** Its outcome is known. */
  commandEnded(command: CommandTrace): void
  happened(event: EventTrace): void
}

/** Has a listener hear of everything. Returns a function that stops it. */
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

/** At `end`, nothing is known of what is waited for: `asyncEnd` follows. */
function whenKnown<Message extends { readonly outcome?: string }>(hear: (message: Message) => void) {
  return (message: unknown): void => {
    if ((message as Message).outcome !== undefined) hear(message as Message)
  }
}
