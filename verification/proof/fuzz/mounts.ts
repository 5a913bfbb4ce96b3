/** Where the middleware is mounted, and with which options. */
export interface Mount {
  readonly required: boolean
  /** Whether the key may stand in the body, and what happens where both places have one. */
  readonly legacy: 'none' | 'header wins' | 'field wins' | 'reject'
  /** Whether `fingerprint` stands for query and body: the body's bytes, whatever their type. */
  readonly countsBytes: boolean
  /** Where the body is read: before the middleware, into `req.body`; behind it; or before it, into `req.rawBody` alone. */
  readonly bodyIsRead: 'before' | 'behind' | 'elsewhere'
  readonly maxAnswerBytes: number
  /** How long the store takes to end a record. */
  readonly storingMs: number
}

const USUAL: Mount = {
  required: false,
  legacy: 'none',
  countsBytes: false,
  bodyIsRead: 'before',
  maxAnswerBytes: 2 ** 20,
  storingMs: 0,
}

export const MOUNTS = {
  plain: USUAL,
  required: { ...USUAL, required: true },
  legacy: { ...USUAL, legacy: 'header wins' },
  sdk: { ...USUAL, legacy: 'field wins' },
  strict: { ...USUAL, legacy: 'reject' },
  bytes: { ...USUAL, countsBytes: true },
  late: { ...USUAL, countsBytes: true, bodyIsRead: 'behind' },
  elsewhere: { ...USUAL, bodyIsRead: 'elsewhere' },
  small: { ...USUAL, maxAnswerBytes: 4096 },
  slow: { ...USUAL, storingMs: 20 },
  closing: { ...USUAL, storingMs: 250 },
} as const satisfies Record<string, Mount>

export type MountName = keyof typeof MOUNTS

export const LEGACY_FIELD = 'idempotencyKey'

export const SERVERS = ['express4', 'express5', 'http'] as const
export type ServerName = (typeof SERVERS)[number]

/** How handlers answer. */
export interface Kind {
  /** `certain`: it fails, and certainly had no effect; `open`: it fails, and may have had its effect. */
  readonly outcome: 'success' | 'certain' | 'open'
  /** Whether it breaks its answer off: its reply may stay out. */
  readonly breaksOff?: boolean
  /** Whether it ends its connection, and with it whatever else is asked for on it. */
  readonly endsConnection?: boolean
  /** Whether its answer can be kept. */
  readonly kept: boolean
  /** Whether its answer is larger than the mount `small` keeps. */
  readonly big?: boolean
  /** Whether it waits until it is released. */
  readonly gated?: boolean
}

const SUCCESS: Kind = { outcome: 'success', kept: true }
const CERTAIN: Kind = { outcome: 'certain', kept: false }
const OPEN: Kind = { outcome: 'open', kept: false }

export const KINDS = {
  raw: SUCCESS,
  json: SUCCESS,
  text: SUCCESS,
  pieces: SUCCESS,
  stream: SUCCESS,
  file: { ...SUCCESS, big: true },
  big: { ...SUCCESS, big: true },
  nothing: SUCCESS,
  moved: SUCCESS,
  slow: SUCCESS,
  late: SUCCESS,
  events: { ...SUCCESS, kept: false },
  flushed: { ...SUCCESS, kept: false },
  refusal: CERTAIN,
  'certain-failure': CERTAIN,
  'late-refusal': OPEN,
  temporary: OPEN,
  throws: OPEN,
  rejects: OPEN,
  passes: OPEN,
  destroys: { ...OPEN, breaksOff: true },
  half: { ...OPEN, breaksOff: true },
  'flushed-then-throws': { ...OPEN, breaksOff: true, endsConnection: true },
  'events-broken-off': { ...OPEN, breaksOff: true },
  'source-fails': { ...OPEN, breaksOff: true, endsConnection: true },
  'drops-request': { ...OPEN, breaksOff: true, endsConnection: true },
  'ends-connection': { ...SUCCESS, endsConnection: true },
  gated: { ...SUCCESS, gated: true },
  'gated-stream': { ...SUCCESS, gated: true },
  'gated-big': { ...SUCCESS, big: true, gated: true },
  'gated-refusal': { ...CERTAIN, gated: true },
} as const satisfies Record<string, Kind>

export type KindName = keyof typeof KINDS

export function isKept(kind: KindName, mount: MountName): boolean {
  const { kept, big }: Kind = KINDS[kind]
  return kept && !(big && MOUNTS[mount].maxAnswerBytes < 10_000)
}
