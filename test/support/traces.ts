import { channel, tracingChannel } from 'node:diagnostics_channel'
import type { ClaimTrace, CommandTrace, EventTrace } from 'once-per-key/core'
import { onTestFinished } from 'vitest'

type PhaseName = 'start' | 'end' | 'asyncStart' | 'asyncEnd' | 'error'

/** A message of a tracing channel, as it was when it was published. */
export type Phase<Message> = Message & { readonly phase: PhaseName }

/** All that the core publishes until the test is over. */
export function traces() {
  const claims: Phase<ClaimTrace>[] = []
  const commands: Phase<CommandTrace>[] = []
  const events: EventTrace[] = []
  listen('once-per-key:claim', claims)
  listen('once-per-key:command', commands)
  const hear = (message: unknown): void => void events.push(message as EventTrace)
  channel('once-per-key:event').subscribe(hear)
  onTestFinished(() => void channel('once-per-key:event').unsubscribe(hear))
  return { claims, commands, events, types: () => events.map(({ event }) => event.type) }
}

function listen<Message extends object>(name: string, heard: Phase<Message>[]): void {
  const phase = (phase: PhaseName) => (message: object) => void heard.push({ ...(message as Message), phase })
  const subscribers = {
    start: phase('start'),
    end: phase('end'),
    asyncStart: phase('asyncStart'),
    asyncEnd: phase('asyncEnd'),
    error: phase('error'),
  }
  tracingChannel(name).subscribe(subscribers)
  onTestFinished(() => void tracingChannel(name).unsubscribe(subscribers))
}

/** The phases of each message, in order. */
export function phasesOf(messages: readonly { readonly phase: string }[]): string[] {
  return messages.map(({ phase }) => phase)
}

/** Messages as they were when all was known. */
export function ended<Message>(messages: readonly Phase<Message>[]): Phase<Message>[] {
  return messages.filter((message) => 'outcome' in message && (message.phase === 'asyncEnd' || message.phase === 'end'))
}
