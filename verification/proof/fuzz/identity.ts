import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { LEGACY_FIELD, MOUNTS, type Mount, type MountName } from './mounts.js'

// The contract's rules for keys and sameness, written a second time: the library's own are what is on trial.

/** What a request says of its key. */
export type Reading = { readonly key: string } | 'uncovered' | 'absent' | 'invalid'

const METHODS = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

export interface Asked {
  readonly mount: MountName
  readonly method: string
  /** As sent. */
  readonly target: string
  /** The lines of the key's header, without the white space around them. */
  readonly keyLines: readonly Buffer[]
  /** What a parser makes of the body. */
  readonly body: unknown
}

export function readingOf({ mount, method, keyLines, body }: Asked): Reading {
  if (!METHODS.has(method)) return 'uncovered'
  const { legacy }: Mount = MOUNTS[mount]
  const inBody = legacy === 'none' ? 'absent' : readField(body)
  if (keyLines.length === 0) return inBody
  if (legacy === 'field wins' && inBody !== 'absent') return inBody
  const [line, second] = keyLines
  if (line === undefined || second !== undefined) return 'invalid'
  const inHeader = readText(textOf(line))
  if (legacy !== 'reject' || inBody === 'absent' || inHeader === 'invalid') return inHeader
  return JSON.stringify(inHeader) === JSON.stringify(inBody) ? inHeader : 'invalid'
}

/** One text for two requests exactly when they are the same operation. */
export function samenessOf({ mount, method, target, body }: Asked): string {
  const { countsBytes, legacy }: Mount = MOUNTS[mount]
  const [path, ...query] = target.split('?')
  const content = legacy === 'none' ? body : withoutField(body)
  const parts = countsBytes
    ? [method, path, Buffer.isBuffer(content) ? content.toString('hex') : '']
    : [method, path, query.join('?'), query.length, canonical(content)]
  return createHash('sha1').update(JSON.stringify(parts)).digest('base64url')
}

function textOf(line: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(line)
  } catch {
    return line.toString('latin1')
  }
}

function readField(body: unknown): Reading {
  if (typeof body !== 'object' || body === null || !Object.hasOwn(body, LEGACY_FIELD)) return 'absent'
  const value = (body as Record<string, unknown>)[LEGACY_FIELD]
  if (value === null || value === undefined) return 'absent'
  return typeof value === 'string' ? readText(value) : 'invalid'
}

function readText(text: string): Reading {
  const key = unquoted(text) ?? text
  const characters = [...key]
  const isValid =
    !['undefined', 'null', 'NaN', '[object Object]'].includes(key) &&
    characters.length >= 1 &&
    characters.length <= 255 &&
    characters.every((character) => {
      const code = character.codePointAt(0) as number
      const isControl = code < 0x20 || (code >= 0x7f && code < 0xa0)
      return !isControl && !(code >= 0xd800 && code < 0xe000)
    })
  return isValid ? { key } : 'invalid'
}

/** RFC 8941 §4.2.5, character by character; `null`: the text as a whole is not one string. */
function unquoted(text: string): string | null {
  if (text.length < 2 || !text.startsWith('"') || !text.endsWith('"')) return null
  let content = ''
  for (let i = 1; i < text.length - 1; i++) {
    const character = text[i] as string
    if (character === '\\') {
      i++
      const escaped = text[i] as string
      if (i === text.length - 1 || (escaped !== '"' && escaped !== '\\')) return null
      content += escaped
    } else if (character === '"' || character < ' ' || character > '~') return null
    else content += character
  }
  return content
}

function withoutField(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body) || Buffer.isBuffer(body)) return body
  return Object.fromEntries(Object.entries(body).filter(([name]) => name !== LEGACY_FIELD))
}

function canonical(value: unknown): string {
  if (value === undefined) return '{}'
  if (Buffer.isBuffer(value)) return value.length === 0 ? 'bytes ' : `bytes ${value.toString('hex')}`
  if (typeof value === 'string' && value.isWellFormed()) return `bytes ${Buffer.from(value).toString('hex')}`
  return ofJson(value)
}

function ofJson(value: unknown): string {
  if (typeof value === 'number') return value === 0 ? '0' : `${value}`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(ofJson).join()}]`
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}:${ofJson(member)}`)
  return `{${members.sort().join()}}`
}
