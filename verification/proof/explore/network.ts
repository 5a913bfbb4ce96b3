import type { Command, Reply } from './history.js'

/** A command under way to the store, or its reply under way back. */
export interface Message {
  readonly by: number
  /** The storage key. */
  readonly key: string
  readonly command: Command
  readonly sentAt: number
  /** The reply that is on its way back; absent: the command has not reached the store. */
  readonly reply?: Reply
  /** Whether somebody waits for the reply: not so for a copy. */
  readonly isCopy: boolean
  /** Just sent: what becomes of it comes before anything else happens. */
  isFresh: boolean
  readonly resolve: (reply: Reply) => void
  readonly reject: (error: Error) => void
}

/** What is between the processes and the store, in the order in which it was sent. */
export interface Network {
  readonly messages: readonly Message[]
  readonly send: <R extends Reply>(by: number, key: string, command: Command, sentAt: number) => Promise<R>
  readonly take: (message: Message) => void
  readonly put: (message: Message) => void
}

export function createNetwork(): Network {
  const messages: Message[] = []

  return {
    messages,
    send(by, key, command, sentAt) {
      return new Promise((resolve, reject) => {
        messages.push({
          by,
          key,
          command,
          sentAt,
          isCopy: false,
          isFresh: true,
          resolve: resolve as (reply: Reply) => void,
          reject,
        })
      })
    },
    take(message) {
      messages.splice(messages.indexOf(message), 1)
    },
    put(message) {
      messages.push(message)
    },
  }
}
