import type { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import type { MaybePromise } from '../../../core/index.js'
import type { Delivered } from './delivered-event.js'
import { type Parse, type ParsedEvent, parsedEvent } from './parse.js'

/** What differs between senders. */
export interface Sender {
  /** The types that its events can have; `null`: any, and `on` says which are handled. */
  readonly types: readonly string[] | null
  /** The content types of its deliveries; `null`: any. */
  readonly contentType: RegExp | null
  /** The type in a delivery's path, or `null` if the path is not a delivery's. Absent: every path is one. */
  readonly typeInPath?: (target: string) => string | null
  /** Reads a delivery whose signature was accepted. */
  readonly read: (raw: Buffer, headers: IncomingHttpHeaders) => MaybePromise<Delivered>
}

/** The sender whose deliveries `parse` reads: every request is one. */
export function parsedSender(parse: Parse<ParsedEvent>): Sender {
  return { types: null, contentType: null, read: (raw, headers) => parsedEvent(parse, raw, headers) }
}
