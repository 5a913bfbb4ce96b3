import type { RequestHandler, Response } from 'express'
import type { IdempotencyEvent } from 'once-per-key'
import type { IdempotencyRecord } from 'once-per-key/core'
import { merchantOf } from '../merchants.js'
import { ServiceProblem } from '../problems.js'

type RecordName = { readonly scope: string; readonly key: string }

/** What happens to one key of the authenticated merchant, as server-sent events. */
export interface RecordFeed {
  /** `GET …?key=`: the record as it stands, at once, with each event, and every second. */
  readonly open: RequestHandler
  readonly hear: (event: IdempotencyEvent) => void
  /** Ends all feeds, and opens no more. */
  readonly close: () => void
}

const EVERY_MS = 1_000
const MOST_FEEDS = 64
const MOST_CHARACTERS = 255
/** A reader that lags this far behind is cut off: it opens a new feed, and is told how the record stands. */
const MOST_UNREAD_BYTES = 64 * 1_024
const MOST_WAITING = 256

/**
 * Each message is `{ event, record }`: what happened, or null, and how the record stands. Events are those of this
 * process; the record is the store's, and so what other processes did to it shows within a second. A message without a
 * record: the store did not answer.
 */
export function recordFeed(inspect: (name: RecordName) => Promise<IdempotencyRecord | null>): RecordFeed {
  const listeners = new Set<Listener>()
  let closed = false

  return {
    open(req, res) {
      const { key } = req.query
      if (!isKey(key)) throw keyInvalid()
      if (closed) throw feedUnavailable('The service is stopping.')
      if (listeners.size >= MOST_FEEDS) throw feedUnavailable(`All ${MOST_FEEDS} feeds are taken.`)
      const name = { scope: merchantOf(req).id, key }
      const listener = startListener(res, name, () => inspect(name))
      listeners.add(listener)
      res.once('close', () => listeners.delete(listener))
    },

    hear(event) {
      if (!('key' in event) || isOfTheFeed(event)) return
      for (const { name, tell } of listeners) {
        if (name.scope === event.scope && name.key === event.key) tell(event)
      }
    },

    close() {
      closed = true
      for (const { end } of listeners) end()
    },
  }
}

interface Listener {
  readonly name: RecordName
  readonly tell: (event: IdempotencyEvent | null) => void
  readonly end: () => void
}

function startListener(res: Response, name: RecordName, inspect: () => Promise<IdempotencyRecord | null>): Listener {
  let waiting: (IdempotencyEvent | null)[] = []
  let telling = false

  function tell(event: IdempotencyEvent | null): void {
    waiting.push(event)
    if (waiting.length > MOST_WAITING || res.writableLength > MOST_UNREAD_BYTES) res.destroy()
    else if (!telling) void tellAll()
  }

  /** What comes while the store is asked is told with its next answer. */
  async function tellAll(): Promise<void> {
    telling = true
    while (waiting.length > 0 && !res.writableEnded && !res.destroyed) {
      const events = waiting
      waiting = []
      const record = await inspect().then(shownRecord, () => undefined)
      if (res.writableEnded) break
      for (const event of events) res.write(`data: ${JSON.stringify({ event: shownEvent(event), record })}\n\n`)
    }
    telling = false
  }

  res.writeHead(200, {
    'Content-Type': 'text/event-stream',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  })
  const timer = setInterval(() => {
    if (!telling) tell(null)
  }, EVERY_MS).unref()
  res.once('close', () => clearInterval(timer))
  tell(null)
  return { name, tell, end: () => res.end() }
}

/** Without the answer, which belongs to whoever asked. */
function shownRecord(record: IdempotencyRecord | null): object | null {
  if (record === null) return null
  const { state, attempt } = record
  switch (record.state) {
    case 'in-flight':
      return { state, attempt, uncertain: record.uncertain, leaseRemainingMs: record.leaseRemainingMs }
    case 'completed':
      return { state, attempt, status: record.answer?.status }
    case 'failed':
      return { state, attempt, uncertain: record.uncertain }
  }
}

/** Of a failure of the store only that it happened: its words may name what clients need not know. */
function shownEvent(event: IdempotencyEvent | null): object | null {
  if (event === null || !('error' in event)) return event
  const { error: _, ...shown } = event
  return shown
}

/** A look at the record that fails is no news to tell with another look. */
function isOfTheFeed(event: IdempotencyEvent): boolean {
  return event.type === 'store_failed' && event.command === 'inspect'
}

/** As the library has it: characters, not the units that they are encoded in. */
function isKey(given: unknown): given is string {
  return typeof given === 'string' && given !== '' && [...given].length <= MOST_CHARACTERS && !/\p{Cc}/u.test(given)
}

function keyInvalid(): ServiceProblem {
  return new ServiceProblem(400, 'key_invalid', 'The key is not valid', 'Name one of 1 to 255 characters: ?key=…')
}

function feedUnavailable(reason: string): ServiceProblem {
  return new ServiceProblem(503, 'feed_unavailable', 'There is no feed at the moment', `${reason} Try again later.`, {
    headers: { 'Retry-After': '1' },
  })
}
