import { Buffer } from 'node:buffer'
import { machine, type Store } from '../../core/index.js'
import type { IdempotencyEvent } from '../../http/index.js'
import { assertPromise } from '../seen.js'
import {
  type BindingApp,
  type BindingCall,
  type BindingOptions,
  type BindingReply,
  type BindingResponse,
  type SendToBinding,
  sendTo,
} from './binding-app.js'

/** What a framework is like, where frameworks differ. */
export interface BindingLawsOptions {
  /**
   * The framework joins header lines of one name, as Fetch does.
   * @default false
   */
  readonly joinsHeaderLines?: boolean | undefined

  /**
   * An application has no error handler: the server answers what a handler throws.
   * @default false
   */
  readonly hasNoErrorHandler?: boolean | undefined

  /**
   * The binding never sees what a handler throws, so a `CertainFailure` and errors of other services cannot be recognised.
   * @default false
   */
  readonly hidesErrors?: boolean | undefined

  /**
   * The binding reads request bodies itself, up to 1 MiB by default, and refuses longer ones.
   * @default false
   */
  readonly readsBodies?: boolean | undefined
}

export interface BindingLaw {
  /** A sentence that begins with the name of its law. */
  readonly name: string
  /** Whether it holds for such a framework. */
  readonly holds: (framework: BindingLawsOptions) => boolean
  readonly check: (serve: Serve) => Promise<void>
}

const isEverywhere = () => true

export function createBindingLaw(
  name: string,
  check: BindingLaw['check'],
  holds: BindingLaw['holds'] = isEverywhere,
): BindingLaw {
  return { name, holds, check }
}

export function createBindingLaws(
  laws: Readonly<Record<string, BindingLaw['check']>>,
  holds?: BindingLaw['holds'],
): BindingLaw[] {
  return Object.entries(laws).map(([name, check]) => createBindingLaw(name, check, holds))
}

/** A served application: behind a port of 127.0.0.1, or called by your own `send`. */
export type OpenedBinding = ({ readonly port: number } | { readonly send: SendToBinding }) & {
  /** The binding's own: resolves when no run is pending any more. */
  readonly idle: () => Promise<void>
  /** Called at the end of the test, whether it passed or not. */
  readonly close?: (() => void | Promise<void>) | undefined
}

export type OpenBinding = (app: BindingApp) => OpenedBinding | Promise<OpenedBinding>

/** Serves an application that is closed at the end of the law. */
export type Serve = (handler: BindingApp['handler'], setting?: Setting) => Promise<Served>

interface Setting {
  readonly options?: Partial<BindingOptions>
  readonly onError?: (error: unknown) => BindingReply
  readonly isProtected?: boolean
}

interface Served {
  readonly events: readonly IdempotencyEvent[]
  runs(): number
  /** Sends a payout, and resolves with its whole response. */
  send(sent?: PayoutRequest): Promise<SeenReply>
  idle(): Promise<void>
}

/** `POST /payouts` with the key `k` and a small JSON body, unless it says otherwise. `key: null`: without the header. */
export interface PayoutRequest {
  readonly method?: string
  readonly target?: string
  readonly key?: string | null
  readonly headers?: readonly (readonly [name: string, value: string])[]
  readonly json?: unknown
  /** Instead of JSON; its content type is among the headers. */
  readonly bytes?: Uint8Array | string
  readonly signal?: AbortSignal
}

/** A response, and how laws look at it. */
export class SeenReply {
  readonly status: number
  readonly headers: BindingResponse['headers']
  readonly body: Buffer

  constructor({ status, headers, body }: BindingResponse) {
    this.status = status
    this.headers = headers
    this.body = Buffer.from(body)
  }

  get text(): string {
    return this.body.toString()
  }

  listHeaderValues(name: string): string[] {
    return this.headers.filter(([each]) => each.toLowerCase() === name.toLowerCase()).map(([, value]) => value)
  }

  findHeader(name: string): string | undefined {
    return this.listHeaderValues(name)[0]
  }

  /** A problem's code, or `null`. */
  get code(): unknown {
    try {
      return JSON.parse(this.text).code ?? null
    } catch {
      return null
    }
  }
}

export function assertProblem(reply: SeenReply, status: number, code: string, promise: string): void {
  assertPromise([reply.status, reply.code], [status, code], promise)
}

/** Runs one law, and closes what it has opened. */
export async function runBindingLaw(open: OpenBinding, check: (serve: Serve) => Promise<void>): Promise<void> {
  const opened: OpenedBinding[] = []
  const serve: Serve = async (handler, { options, onError, isProtected = true } = {}) => {
    const events: IdempotencyEvent[] = []
    let runs = 0
    const binding = await open({
      isProtected,
      onError,
      options: {
        store: createTrialStore(),
        scope: () => 'acme',
        ...options,
        onEvent: (event) => events.push(event),
      },
      handler(call: BindingCall) {
        runs++
        return handler(call)
      },
    })
    opened.push(binding)
    const send = 'send' in binding ? binding.send : sendTo(binding.port)
    return {
      events,
      runs: () => runs,
      send: async (sent) => new SeenReply(await awaitInTime('Each request is answered.', send(toBindingRequest(sent)))),
      idle: () => awaitInTime('`idle` resolves once the handlers have ended.', binding.idle()),
    }
  }
  try {
    await check(serve)
  } finally {
    for (const { close } of opened) await close?.()
  }
}

function toBindingRequest({
  method = 'POST',
  target = '/payouts',
  key = 'k',
  json,
  bytes,
  headers = [],
  signal,
}: PayoutRequest = {}) {
  const lines = [...headers]
  if (key !== null) lines.push(['Idempotency-Key', key])
  const hasBody = method !== 'GET' && method !== 'HEAD'
  if (hasBody && bytes === undefined) lines.push(['Content-Type', 'application/json'])
  const body = hasBody ? Buffer.from((bytes ?? JSON.stringify(json ?? { amount: 100 })) as string) : null
  return { method, target, headers: lines, body, signal: signal ?? new AbortController().signal }
}

/** A binding that never answers fails the law that waits for it, and not the whole run of tests. */
const MOST_MS = 10_000

async function awaitInTime<Value>(promise: string, work: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, MOST_MS, 'late')
  })
  try {
    const first = await Promise.race([work.then((value) => ({ value })), late])
    if (first === 'late') return assertPromise(`nothing in ${MOST_MS / 1_000} s`, 'a reply', promise) as never
    return first.value
  } finally {
    clearTimeout(timer)
  }
}

interface TrialStore extends Store {
  /** The next `begin` fails, as if the store were away. */
  failNextBegin(): void
}

/** The machine in a Map: one process, and only as long as a test. */
export function createTrialStore(): TrialStore {
  const records = new Map<string, machine.StoredRecord>()
  let isAway = false

  function applyCommand<Reply>(
    key: string,
    command: (stored: machine.StoredRecord | null) => machine.Change<Reply>,
  ): Reply {
    const { record, reply } = command(records.get(key) ?? null)
    if (record !== null) records.set(key, record)
    return reply
  }

  return {
    failNextBegin() {
      isAway = true
    },
    async begin(key, claim) {
      const fails = isAway
      isAway = false
      if (fails) throw new Error('The store is away.')
      return applyCommand(key, (stored) => machine.begin(stored, claim, performance.now()))
    },
    renew: async (key, own) => applyCommand(key, (stored) => machine.renew(stored, own, performance.now())),
    complete: async (key, own) => applyCommand(key, (stored) => machine.complete(stored, own, performance.now())),
    release: async (key, own) => applyCommand(key, (stored) => machine.release(stored, own, performance.now())),
  }
}
