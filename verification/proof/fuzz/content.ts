import { Buffer } from 'node:buffer'
import zlib from 'node:zlib'
import { LEGACY_FIELD } from './mounts.js'
import type { Random } from './random.js'

/** A request's body, apart from the way in which it is written. */
export type Content =
  | { readonly type: 'none' }
  /** JSON: an object by its members, each a text. */
  | { readonly type: 'object'; readonly members: readonly string[] }
  | { readonly type: 'value'; readonly text: string }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'octets'; readonly bytes: Buffer }
  /** Ill-made, or of a kind that no parser is there for. */
  | { readonly type: 'faulty'; readonly fault: Fault; readonly headers: readonly Header[]; readonly bytes: Buffer }

export type Header = readonly [name: string, value: string]

/**
 * `deep`: the library must refuse it; `refused`: the parser must, or the library; `unsure`: either, or it runs. `unseen`:
 * the application reads it where the library cannot see it, and that is misuse.
 */
export type Fault = 'deep' | 'refused' | 'unsure' | 'unseen'

/** A body as it is sent. */
export interface Written {
  readonly headers: readonly Header[]
  readonly bytes: Buffer
  /** What a parser makes of it. */
  readonly body: unknown
}

export function contentOf(random: Random, number: number): Content {
  const share = random.below(20)
  if (share < 2) return { type: 'none' }
  if (share === 2) return { type: 'value', text: random.pick(WHOLE_VALUES) }
  if (share === 3) return { type: 'text', text: `text ${number} é☃ \0` }
  if (share === 4) return { type: 'octets', bytes: Buffer.concat([Buffer.from(`${number} `), random.bytes(20)]) }
  const others = random.shuffled(VALUES).slice(0, random.below(5))
  return { type: 'object', members: [`"amount":${number}`, ...others.map((text, i) => `${NAMES[i]}:${text}`)] }
}

/** Another body of the same kind. */
export function changed(content: Content, random: Random): Content {
  switch (content.type) {
    case 'object':
      return { type: 'object', members: [...content.members, `"changed":${random.below(1000)}`] }
    case 'octets':
      return { type: 'octets', bytes: Buffer.concat([content.bytes, random.bytes(1)]) }
    case 'text':
      return { type: 'text', text: `${content.text}${random.below(1000)}` }
    default:
      return { type: 'object', members: [`"changed":${random.below(1000)}`] }
  }
}

export function faultyContent(random: Random): Content {
  return { type: 'faulty', ...random.pick(FAULTY)(random) }
}

/** The content in one of the ways to write it. `field`: the key as a member, in JSON. */
export function written(content: Content, random: Random, countsBytes: boolean, field?: string): Written {
  switch (content.type) {
    case 'none':
      return { headers: [], bytes: Buffer.alloc(0), body: undefined }
    case 'object': {
      const members = field === undefined ? content.members : [...content.members, `"${LEGACY_FIELD}":${field}`]
      const texts = countsBytes ? members : random.shuffled(members)
      const space = countsBytes ? '' : random.pick(['', '', ' ', '\r\n\t '])
      return writtenJson(`{${space}${texts.join(`${space},${space}`)}${space}}`, random, countsBytes)
    }
    case 'value':
      return writtenJson(content.text, random, countsBytes)
    case 'text': {
      const bytes = Buffer.from(content.text)
      const headers = [
        ['Content-Type', random.pick(['text/plain', 'text/plain; charset=utf-8', 'TEXT/x-odd'])],
      ] as const
      return compressed({ headers, bytes, body: countsBytes ? bytes : content.text }, random)
    }
    case 'octets':
      return compressed(
        { headers: [['Content-Type', 'application/octet-stream']], bytes: content.bytes, body: content.bytes },
        random,
      )
    case 'faulty':
      return { headers: content.headers, bytes: content.bytes, body: undefined }
  }
}

function writtenJson(text: string, random: Random, countsBytes: boolean): Written {
  if (!countsBytes && random.chance(0.05)) {
    const headers = [['Content-Type', 'application/json; charset=utf-16le']] as const
    return { headers, bytes: Buffer.from(text, 'utf16le'), body: JSON.parse(text) }
  }
  const type = random.pick(['application/json', 'application/json', 'application/json; charset="UTF-8"'])
  const bytes = Buffer.from(text)
  return compressed({ headers: [['Content-Type', type]], bytes, body: countsBytes ? bytes : JSON.parse(text) }, random)
}

function compressed({ headers, bytes, body }: Written, random: Random): Written {
  if (!random.chance(0.08)) return { headers, bytes, body }
  const [coding, compress] = random.pick([['gzip', zlib.gzipSync] as const, ['deflate', zlib.deflateSync] as const])
  return { headers: [...headers, ['Content-Encoding', coding]], bytes: compress(bytes), body }
}

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

/** JSON that has been somebody's undoing. */
const VALUES: readonly string[] = [
  '1e400',
  '-0',
  '9007199254740993',
  'null',
  'true',
  '""',
  '[]',
  '{"__proto__":{"isAdmin":true},"constructor":{"prototype":1}}',
  '"\\ud800"',
  '"\\udc00\\ud800 \\u0000"',
  '"é☃😀"',
  '[1,[2,{"a":[]}],"1",1.0]',
  '{"":"","a b":1,"\\u0061":2}',
  nested(900),
]
/** As a whole body `null` shows nothing of what was sent: misuse. */
const WHOLE_VALUES = VALUES.filter((text) => text !== 'null')
const NAMES = ['"__proto__"', '"toJSON"', '"length"', '"é"', '"\\ud800"']

const JSON_TYPE = ['Content-Type', 'application/json'] as const

const FAULTY: readonly ((random: Random) => Omit<Extract<Content, { type: 'faulty' }>, 'type'>)[] = [
  (random) => ({
    fault: 'deep',
    headers: [JSON_TYPE],
    bytes: Buffer.from(nested(random.pick([1_001, 3_000, 30_000]))),
  }),
  () => ({
    fault: 'deep',
    headers: [JSON_TYPE],
    bytes: Buffer.from(`${'{"a":'.repeat(12_000)}1${'}'.repeat(12_000)}`),
  }),
  () => ({ fault: 'refused', headers: [JSON_TYPE], bytes: Buffer.from('{"amount":1') }),
  () => ({ fault: 'refused', headers: [JSON_TYPE], bytes: Buffer.from('{"a":\0}') }),
  () => ({ fault: 'unsure', headers: [JSON_TYPE], bytes: Buffer.from([0x22, 0xff, 0xc3, 0x28, 0x22]) }),
  () => ({ fault: 'refused', headers: [JSON_TYPE], bytes: Buffer.from(`"${'x'.repeat(210_000)}"`) }),
  () => ({ fault: 'refused', headers: [JSON_TYPE, ['Content-Encoding', 'gzip']], bytes: Buffer.from('{"no":"gzip"}') }),
  () => ({
    fault: 'refused',
    headers: [JSON_TYPE, ['Content-Encoding', 'gzip']],
    bytes: zlib.gzipSync('{"amount":1}').subarray(0, 20),
  }),
  () => ({ fault: 'refused', headers: [JSON_TYPE, ['Content-Encoding', 'snappy']], bytes: Buffer.from('{}') }),
  () => ({
    fault: 'refused',
    headers: [['Content-Type', 'application/json; charset=klingon']],
    bytes: Buffer.from('{}'),
  }),
  () => ({ fault: 'refused', headers: [['Content-Type', 'application/x-unknown']], bytes: Buffer.from('a') }),
  () => ({ fault: 'refused', headers: [['Content-Type', ';;;/']], bytes: Buffer.from('a') }),
  () => ({ fault: 'refused', headers: [], bytes: Buffer.from('untyped') }),
  () => ({
    fault: 'refused',
    headers: [['Content-Type', 'multipart/form-data; boundary=b']],
    bytes: Buffer.from('--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b--\r\n'),
  }),
  (random) => ({
    fault: 'unsure',
    headers: [['Content-Type', 'application/x-www-form-urlencoded']],
    bytes: Buffer.from(
      random.pick(['a[b][c]=1&__proto__[x]=2', '%zz=%', `a${'[b]'.repeat(50)}=1`, '&&&==', 'a=1&a=2']),
    ),
  }),
  (random) => ({ fault: 'unsure', headers: [['Content-Type', 'text/plain; charset=utf-7']], bytes: random.bytes(9) }),
]
