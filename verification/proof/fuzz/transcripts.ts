import type { Buffer } from 'node:buffer'

/** What the scripts have sent, as long as a story may ask for it. */
export interface Transcripts {
  open(script: number, play: string): (connection: number) => (what: string | Buffer) => void
  close(script: number): void
  /** All that the script of a request has sent so far. */
  of(request: string): string
  /** Those of all scripts that have not ended. */
  unfinished(): string
}

const KEPT = 200
const SHOWN_BYTES = 1_500

export function createTranscripts(seed: number): Transcripts {
  const lines = new Map<number, (string | readonly [connection: number, what: string | Buffer])[]>()
  const open = new Set<number>()
  const ended: number[] = []

  function shown(script: number): string {
    const all = lines.get(script) ?? ['forgotten']
    const texts = all.map((line) => (typeof line === 'string' ? line : `  connection ${line[0]}: ${escaped(line[1])}`))
    return [`Script ${script} of seed ${seed}:`, ...texts].join('\n')
  }

  return {
    open(script, play) {
      const log: typeof lines extends Map<number, infer Log> ? Log : never = [`  ${play}`]
      lines.set(script, log)
      open.add(script)
      return (connection) => (what) => void log.push([connection, what])
    },
    close(script) {
      open.delete(script)
      ended.push(script)
      if (ended.length > KEPT) lines.delete(ended.shift() as number)
    },
    of: (request) => shown(Number(/\d+/.exec(request)?.[0])),
    unfinished: () => [...open].map(shown).join('\n'),
  }
}

/** Bytes as they could be typed; the middle of long ones is left out. */
function escaped(what: string | Buffer): string {
  if (typeof what === 'string') return what
  const text = (from: number, to: number) =>
    what.toString('latin1', from, to).replace(/[^\x20-\x7e]|\\/g, (character) => {
      const hex = character.charCodeAt(0).toString(16).padStart(2, '0')
      return { '\r': '\\r', '\n': '\\n', '\\': '\\\\' }[character] ?? `\\x${hex}`
    })
  const short = (from: number, to: number) =>
    text(from, to).replace(/(.)\1{40,}/g, (all, character) => `${character}<${all.length} times>`)
  if (what.length <= SHOWN_BYTES) return `"${short(0, what.length)}"`
  const half = SHOWN_BYTES / 2
  return `"${short(0, half)}" … ${what.length - SHOWN_BYTES} bytes … "${short(what.length - half, what.length)}"`
}
