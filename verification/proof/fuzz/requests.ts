import { Buffer } from 'node:buffer'
import { type Content, changed, contentOf, type Fault, faultyContent, type Header, written } from './content.js'
import { type Reading, readingOf, samenessOf } from './identity.js'
import { collidingKey, fieldOf, invalidKey, type Key, NO_KEY, validKey } from './keys.js'
import { ACCIDENTS, scopeOf, TRUE_MERCHANTS } from './merchants.js'
import {
  isKept,
  KINDS,
  type Kind,
  type KindName,
  MOUNTS,
  type Mount,
  type MountName,
  SERVERS,
  type ServerName,
} from './mounts.js'
import type { Random } from './random.js'
import { dressing, framed } from './wire.js'

/** What a client wants done, apart from the way in which it is written. */
export interface Operation {
  readonly number: number
  readonly server: ServerName
  readonly mount: MountName
  readonly kind: KindName
  readonly method: string
  readonly merchant: string
  readonly key: Key
  readonly content: Content
  readonly query: string
  /** Not empty: the target is in absolute form (RFC 9112 §3.2.2). */
  readonly origin: string
  /** What stands in the key's field, as JSON, in place of the key. */
  readonly oddField?: string
}

/** A request as it is sent, with what the contract says of it. */
export interface SentRequest {
  readonly id: string
  readonly server: ServerName
  readonly method: string
  readonly bytes: Buffer
  readonly kind: KindName
  readonly mount: MountName
  readonly reading: Reading
  readonly scope: string | null
  readonly fault: Fault | 'none'
  /** Of the record that it is about; `null`: of none. */
  readonly record: string | null
  readonly sameness: string
  readonly isKept: boolean
  /** Another comes before it on its connection. */
  readonly isBehind: boolean
  /** Nothing may follow it on its connection. */
  readonly isLast: boolean
  /** Nor may anything come before it. */
  readonly isAlone: boolean
}

const USUAL_MOUNTS: readonly MountName[] = [
  'plain',
  'plain',
  'required',
  'legacy',
  'sdk',
  'strict',
  'bytes',
  'small',
  'slow',
]
const USUAL_KINDS = (Object.keys(KINDS) as KindName[]).filter((kind) => !kind.startsWith('gated'))
const METHODS = ['POST', 'POST', 'POST', 'PUT', 'PATCH', 'DELETE']

export function operationOf(random: Random, number: number, kind: KindName = random.pick(USUAL_KINDS)): Operation {
  return {
    number,
    server: random.pick(SERVERS),
    mount: random.pick(USUAL_MOUNTS),
    kind,
    method: random.pick(METHODS),
    merchant: random.pick(TRUE_MERCHANTS),
    key: validKey(random, number),
    content: contentOf(random, number),
    query: random.pick(['', '', '?a=1', '?a=1&a=2', '?', '?q=%zz&%00']),
    origin: '',
  }
}

/** The operation with one thing changed, which makes it another. */
export function another(operation: Operation, random: Random): Operation {
  return random.pick(CHANGES)(operation, random)
}

type Change = (operation: Operation, random: Random) => Operation

/** An operation that means something else, though its key is the same. */
export const otherOfSameKey: Change = (operation, random) =>
  random.pick([otherContent, otherQuery, otherMethod, otherKind])(operation, random)

export const otherScope: Change = (operation, random) => ({
  ...operation,
  merchant: random.pick(TRUE_MERCHANTS.filter((name) => name !== operation.merchant)),
})

const otherContent: Change = (operation, random) => ({ ...operation, content: changed(operation.content, random) })
const otherQuery: Change = (operation, random) => ({ ...operation, query: `?other=${random.below(100)}` })
const otherMethod: Change = (operation, random) => ({ ...operation, method: random.pick(METHODS) })
const otherKind: Change = (operation, random) => ({ ...operation, kind: random.pick(['raw', 'json', 'refusal']) })

/** Where a parser takes the body apart. */
const otherFault: Change = (operation, random) => {
  const { countsBytes, bodyIsRead }: Mount = MOUNTS[operation.mount]
  return countsBytes || bodyIsRead !== 'before' ? operation : { ...operation, content: faultyContent(random) }
}

const CHANGES: readonly Change[] = [
  (operation, random) => ({ ...operation, mount: 'legacy', oddField: random.pick(ODD_FIELDS) }),
  (operation, random) => ({ ...operation, mount: 'strict', oddField: random.pick(ODD_FIELDS) }),
  (operation) => ({ ...operation, origin: 'http://test' }),
  (operation, random) => ({ ...operation, mount: random.pick(['late', 'elsewhere']) }),
  otherContent,
  otherContent,
  otherQuery,
  otherMethod,
  otherKind,
  otherScope,
  otherScope,
  (operation, random) => ({ ...operation, key: invalidKey(random, operation.number) }),
  (operation, random) => ({ ...operation, key: invalidKey(random, operation.number) }),
  (operation) => ({ ...operation, key: NO_KEY }),
  (operation, random) => ({ ...operation, merchant: random.pick(ACCIDENTS) }),
  (operation, random) => ({ ...operation, method: random.pick(['GET', 'OPTIONS', 'PROPFIND']) }),
  otherFault,
  otherFault,
]

/** The operation of two merchants, with keys that give the same text where scope and key are joined without care. */
export function rivals(operation: Operation): readonly Operation[] {
  const { ofAcme, ofAcmeEu } = collidingKey(operation.number)
  return [
    { ...operation, merchant: 'merchant-0', key: ofAcme },
    { ...operation, merchant: 'merchant-1', key: ofAcmeEu },
  ]
}

/** Where a request stands on its connection. */
export interface Place {
  readonly version: '1.0' | '1.1'
  readonly isFirst: boolean
}

const ALONE: Place = { version: '1.1', isFirst: true }

/** One of the many ways to send an operation. */
export function requestOf(operation: Operation, id: string, random: Random, place: Place = ALONE): SentRequest {
  const { server, mount, kind, method, merchant, key, content, query, origin, number, oddField } = operation
  const { version, isFirst } = place
  const { countsBytes, legacy, bodyIsRead }: Mount = MOUNTS[mount]
  const hasField = legacy !== 'none' && content.type === 'object'
  const inField = hasField && oddField === undefined && isPlainKey(key) && random.chance(0.6)
  const field = inField ? fieldOf(key) : hasField ? oddField : undefined
  const { headers, bytes, body } = written(content, random, countsBytes, field)
  const keyLines = (inField || oddField !== undefined) && random.chance(0.6) ? [] : random.pick(key.spellings)
  const path = `${origin}/${mount}/${kind}/${number}${query}`
  const asked = { mount, method, target: path, keyLines, body }

  const reading = readingOf(asked)
  const scope = scopeOf(merchant)
  const { breaksOff = false, endsConnection = false }: Kind = KINDS[kind]
  const isUnseen = bodyIsRead !== 'before' && bytes.length > 0
  const fault = isUnseen ? 'unseen' : content.type === 'faulty' ? content.fault : 'none'
  const hasRecord = typeof reading === 'object' && scope !== null && (fault === 'none' || fault === 'unsure')
  const spelledHeaders: (Header | readonly [string, Buffer])[] = [
    ['Host', 'test'],
    ['X-Request', id],
    ['X-Merchant', merchant],
    ...keyLines.map((line) => [random.pick(KEY_NAMES), padded(line, random)] as const),
    ...headers,
    ...dressing(random),
    // Where a response waits for the one before it, Node 20 writes the interim response behind the head.
    ...(isFirst && random.chance(0.05) ? [['Expect', '100-continue'] as const] : []),
  ]
  const line = `${method} ${path} HTTP/${version}`
  return {
    id,
    server,
    method,
    bytes: framed(line, random.shuffled(spelledHeaders), bytes, version === '1.0' ? 'length' : random),
    kind,
    mount,
    reading,
    scope,
    fault,
    record: hasRecord ? JSON.stringify([server, scope, reading.key]) : null,
    sameness: hasRecord ? samenessOf(asked) : '',
    isKept: isKept(kind, mount),
    isBehind: !isFirst,
    // After a late error Express hangs up, once the answer is out.
    isLast: version === '1.0' || kind === 'late' || breaksOff || endsConnection,
    isAlone: endsConnection,
  }
}

const ODD_FIELDS = ['1', '{}', '""', 'null', '"\\ud800"', '["a"]']

const KEY_NAMES = ['Idempotency-Key', 'Idempotency-Key', 'idempotency-key', 'IDEMPOTENCY-KEY', 'iDeMpOtEnCy-kEy']

function isPlainKey(key: Key): boolean {
  const [line] = key.spellings[0] ?? []
  return key.spellings[0]?.length === 1 && line !== undefined && line.toString('utf8') !== '' && !line.includes(0xff)
}

/** White space around a value does not belong to it. */
function padded(line: Buffer, random: Random): Buffer {
  const [before, after] = random.pick([
    ['', ''] as const,
    ['', ''] as const,
    ['  ', '\t'] as const,
    ['\t', '  '] as const,
  ])
  return Buffer.concat([Buffer.from(before), line, Buffer.from(after)])
}
