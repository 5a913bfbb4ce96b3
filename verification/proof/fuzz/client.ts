import type { Buffer } from 'node:buffer'
import { type Connection, connectTo } from '../../../test/support/raw-client.js'
import type { RawReply } from '../../../test/support/raw-reply.js'
import { Late, type Pulse } from '../limits/pulse.js'

/**
 * A reply, or why there is none. `cut while sending`: a server that refuses a request before it has read all of it, and closes, may
 * reset what is still on its way, and with that the refusal (RFC 9112 §9.6): a client that sends in pieces cannot tell.
 */
export type Heard = RawReply | 'closed' | 'cut while sending' | 'late' | 'no HTTP'

/** How a client leaves. */
export type Leave = 'destroy' | 'reset' | 'end'

export interface Client {
  /** Writes the bytes in pieces, with a pause after each. */
  write(bytes: Buffer, cuts?: readonly number[], pauseMs?: number): Promise<void>
  /** `isPatient`: something is wrong where there is none in time. Otherwise it may stay out, and is not waited for as long. */
  reply(method: string, isPatient?: boolean): Promise<Heard>
  /** Whether the server closed the connection in time. */
  closed(): Promise<boolean>
  leave(how: Leave): void
}

/** A limit that a busy machine keeps; shorter once something has been seen to hang. */
export interface Patience {
  beats: number
  /** Of the service. */
  pulse: Pulse
  /** How often it was over. */
  late: number
}

/** `log` hears all that the client does. */
export function connectClient(port: number, patience: Patience, log: (what: string | Buffer) => void): Client {
  const connection: Connection = connectTo(port)
  const { socket } = connection
  socket.setNoDelay(true)
  let isPiecemeal = false

  return {
    async write(bytes, cuts = [], pauseMs = 0) {
      let start = 0
      isPiecemeal ||= cuts.length > 0
      for (const end of [...cuts, bytes.length]) {
        if (end <= start || !socket.writable) continue
        log(bytes.subarray(start, end))
        socket.write(bytes.subarray(start, end))
        start = end
        if (start < bytes.length) await pause(pauseMs)
      }
    },
    async reply(method, isPatient = true) {
      const heard = connection.reply(method).catch((error) => {
        if (!/closed before/.test(`${error}`)) return 'no HTTP'
        return isPiecemeal && connection.wasReset() ? 'cut while sending' : 'closed'
      })
      return isPatient ? inTime(heard, patience) : within(SHORT_BEATS, heard, patience)
    },
    async closed() {
      return (await inTime(connection.closed, patience)) !== 'late'
    },
    leave(how) {
      log(`leaves (${how})`)
      if (how === 'destroy') socket.destroy()
      else if (how === 'reset') socket.resetAndDestroy()
      else socket.end()
    },
  }
}

/** Short pauses are turns of the event loop: a timer would take a millisecond each. */
export async function pause(ms: number): Promise<void> {
  if (ms === 0) await new Promise((resolve) => setImmediate(resolve))
  else await new Promise((resolve) => setTimeout(resolve, ms))
}

export async function inTime<T>(promise: Promise<T>, patience: Patience): Promise<T | 'late'> {
  const seen = await within(patience.beats, promise, patience)
  if (seen === 'late') lose(patience)
  return seen
}

async function within<T>(beats: number, promise: Promise<T>, { pulse }: Patience): Promise<T | 'late'> {
  try {
    return await pulse.within(beats, promise)
  } catch (error) {
    if (!(error instanceof Late)) throw error
    return 'late'
  }
}

/** Something was late. */
export function lose(patience: Patience): void {
  patience.late++
  patience.beats = Math.min(patience.beats, SHORT_BEATS)
}

const SHORT_BEATS = 30
