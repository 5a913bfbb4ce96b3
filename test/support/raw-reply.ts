import { Buffer } from 'node:buffer'

/** A response as it came off the wire; text is Latin-1. */
export interface RawReply {
  readonly status: number
  readonly statusMessage: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly trailers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
  /** Statuses of the interim responses before it. */
  readonly interim: readonly number[]
  /** The value of a header that may come once; fails where it comes twice. */
  header(name: string): string | undefined
  /** All lines of a header. */
  lines(name: string): readonly string[]
  json(): unknown
}

/** Reads one reply from the front of what has come; `null`: it is not complete. */
export function readReply(bytes: Buffer, method: string, ended: boolean): { reply: RawReply; length: number } | null {
  const interim: number[] = []
  for (let start = 0; ; ) {
    const headEnd = bytes.indexOf('\r\n\r\n', start)
    if (headEnd === -1) return null
    const [statusLine = '', ...lines] = bytes.toString('latin1', start, headEnd).split('\r\n')
    const match = /^HTTP\/1\.1 (\d{3}) ?(.*)$/s.exec(statusLine)
    if (match === null) throw new Error(`Not a status line: ${statusLine}`)
    const status = Number(match[1])
    if (status < 200) {
      interim.push(status)
      start = headEnd + 4
      continue
    }
    const headers = lines.map(pairOf)
    const content = readContent(bytes, headEnd + 4, { headers, status, method, ended })
    if (content === null) return null
    const reply = replyOf({ status, statusMessage: match[2] ?? '', headers, interim, ...content })
    return { reply, length: content.end }
  }
}

type Pair = readonly [name: string, value: string]
type Content = { readonly body: Buffer; readonly trailers: readonly Pair[]; readonly end: number }

function readContent(
  bytes: Buffer,
  start: number,
  { headers, status, method, ended }: { headers: readonly Pair[]; status: number; method: string; ended: boolean },
): Content | null {
  if (method === 'HEAD' || status === 204 || status === 304) return { body: Buffer.alloc(0), trailers: [], end: start }
  const find = (wanted: string) => headers.find(([name]) => name.toLowerCase() === wanted)?.[1]
  if (find('transfer-encoding') === 'chunked') return readChunks(bytes, start)
  const length = find('content-length')
  if (length === undefined) return ended ? { body: bytes.subarray(start), trailers: [], end: bytes.length } : null
  const end = start + Number(length)
  return bytes.length < end ? null : { body: bytes.subarray(start, end), trailers: [], end }
}

function readChunks(bytes: Buffer, start: number): Content | null {
  const chunks: Buffer[] = []
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd === -1) return null
    const line = bytes.toString('latin1', at, lineEnd)
    if (!/^[\da-f]+$/i.test(line)) throw new Error(`This is not the size of a chunk: ${line}`)
    const size = Number.parseInt(line, 16)
    if (size === 0) {
      if (bytes.toString('latin1', lineEnd + 2, lineEnd + 4) === '\r\n') {
        return { body: Buffer.concat(chunks), trailers: [], end: lineEnd + 4 }
      }
      const end = bytes.indexOf('\r\n\r\n', lineEnd)
      if (end === -1) return null
      const trailers = bytes
        .toString('latin1', lineEnd + 2, end)
        .split('\r\n')
        .map(pairOf)
      return { body: Buffer.concat(chunks), trailers, end: end + 4 }
    }
    const from = lineEnd + 2
    if (bytes.length < from + size + 2) return null
    chunks.push(bytes.subarray(from, from + size))
    at = from + size + 2
  }
}

function pairOf(line: string): Pair {
  const colon = line.indexOf(':')
  return [line.slice(0, colon), line.slice(colon + 1).trim()]
}

function replyOf(parts: Omit<RawReply, 'header' | 'lines' | 'json'>): RawReply {
  const lines = (wanted: string) =>
    parts.headers.filter(([name]) => name.toLowerCase() === wanted.toLowerCase()).map(([, value]) => value)
  return {
    ...parts,
    lines,
    header(name) {
      const values = lines(name)
      if (values.length > 1) throw new Error(`${name} came ${values.length} times`)
      return values[0]
    },
    json: () => JSON.parse(parts.body.toString()),
  }
}
