import { paintFor } from './paint.js'

/** How far a run is: a bar on a terminal, a line for each quarter elsewhere. */
export interface Progress {
  /** `part`: 0 to 1. */
  tell(part: number, words: string): void
  /** Something that happened once. */
  note(words: string): void
  end(): void
}

const CELLS = 24
/** For "100 %" and the spaces around it. */
const BESIDE = 10
const REDRAW_MS = 80

export function startProgress(stream: NodeJS.WriteStream): Progress {
  const startedAt = performance.now()
  const seconds = () => `${Math.round((performance.now() - startedAt) / 1_000)} s`
  return stream.isTTY ? bar(stream, seconds) : quarters(stream, seconds)
}

function bar(stream: NodeJS.WriteStream, seconds: () => string): Progress {
  const CLEAR = '\r\x1b[K'
  const paint = paintFor(stream)
  let latest = { part: 0, words: '' }

  function draw(): void {
    const { part, words } = latest
    if (words === '') return
    // A line that wraps could not be drawn over. A terminal that does not know its width says 0.
    const width = stream.columns || 80
    const cells = Math.max(0, Math.min(CELLS, width - BESIDE))
    const full = Math.floor(part * cells)
    const drawn = paint('green', '█'.repeat(full)) + paint('dim', '░'.repeat(cells - full))
    const text = `${Math.floor(part * 100)} %  ${words}, ${seconds()}`
    stream.write(`${CLEAR}  ${drawn}  ${text.slice(0, Math.max(0, width - cells - 5))}`)
  }

  const timer = setInterval(draw, REDRAW_MS).unref()
  return {
    tell(part, words) {
      latest = { part, words }
    },
    note(words) {
      stream.write(`${CLEAR}  ${words}\n`)
      draw()
    },
    end() {
      clearInterval(timer)
      draw()
      stream.write('\n')
    },
  }
}

function quarters(stream: NodeJS.WriteStream, seconds: () => string): Progress {
  let told = 0
  return {
    tell(part, words) {
      const quarter = Math.floor(part * 4)
      if (quarter > told) stream.write(`  ${quarter * 25} %  ${words}, ${seconds()}\n`)
      told = Math.max(told, quarter)
    },
    note: (words) => void stream.write(`  ${words}\n`),
    end() {},
  }
}
