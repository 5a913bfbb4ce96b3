import { request } from 'node:http'
import { expect } from 'vitest'

export interface Command {
  readonly port: number
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The lines that `curl -si` prints. */
export function printedBy({ port, path, headers, body }: Command): Promise<string[]> {
  return new Promise((resolve) => {
    const req = request({ port, path, method: 'POST', headers }, async (res) => {
      const lines = [`HTTP/1.1 ${res.statusCode} ${res.statusMessage}`]
      for (let i = 0; i < res.rawHeaders.length; i += 2) lines.push(`${res.rawHeaders[i]}: ${res.rawHeaders[i + 1]}`)
      resolve([...lines, '', Buffer.concat(await res.toArray()).toString()])
    })
    req.on('error', () => {}) // One that still runs ends with its server.
    req.end(body)
  })
}

/** Each line that a page shows was printed, in this order. `…` stands for anything. */
export function expectPrinted(printed: readonly string[], shown: readonly string[]): void {
  let at = 0
  for (const line of shown) {
    const found = printed.findIndex((each, i) => i >= at && asPattern(line).test(each))
    expect(found, `${line}\nin\n${printed.join('\n')}`).toBeGreaterThanOrEqual(at)
    at = found + 1
  }
}

function asPattern(line: string): RegExp {
  const literal = line.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${literal.join('.*')}$`)
}
