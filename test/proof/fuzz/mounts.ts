/** Where the middleware is mounted, and with which options. */
export interface Mount {
  readonly required: boolean
  /** Whether the key may stand in the body, and what happens where both places have one. */
  readonly legacy: 'none' | 'header wins' | 'reject'
  /** Whether `fingerprint` stands for query and body: the body's bytes, whatever their type. */
  readonly countsBytes: boolean
  readonly maxAnswerBytes: number
  /** How long the store takes to end a record. */
  readonly storingMs: number
}

const USUAL: Mount = {
  required: false,
  legacy: 'none',
  countsBytes: false,
  maxAnswerBytes: 2 ** 20,
  storingMs: 0,
}

export const MOUNTS = {
  plain: USUAL,
  required: { ...USUAL, required: true },
  legacy: { ...USUAL, legacy: 'header wins' },
  strict: { ...USUAL, legacy: 'reject' },
  bytes: { ...USUAL, countsBytes: true },
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
  readonly outcome: 'success' | 'failure' | 'destroyed'
  /** Whether its answer can be kept. */
  readonly kept: boolean
  /** Whether its answer is larger than the mount `small` keeps. */
  readonly big?: boolean
  /** Whether it waits until it is released. */
  readonly gated?: boolean
}

const SUCCESS: Kind = { outcome: 'success', kept: true }
const FAILURE: Kind = { outcome: 'failure', kept: false }

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
  refusal: FAILURE,
  temporary: FAILURE,
  throws: FAILURE,
  rejects: FAILURE,
  passes: FAILURE,
  uncertain: FAILURE,
  destroys: { outcome: 'destroyed', kept: false },
  half: { outcome: 'destroyed', kept: false },
  gated: { ...SUCCESS, gated: true },
  'gated-stream': { ...SUCCESS, gated: true },
  'gated-big': { ...SUCCESS, big: true, gated: true },
  'gated-refusal': { ...FAILURE, gated: true },
} as const satisfies Record<string, Kind>

export type KindName = keyof typeof KINDS

export function isKept(kind: KindName, mount: MountName): boolean {
  const { kept, big }: Kind = KINDS[kind]
  return kept && !(big && MOUNTS[mount].maxAnswerBytes < 10_000)
}
