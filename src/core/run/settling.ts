import { rethrow } from '../calls/awaited.js'
import type { RunEnd } from '../events/refusal.js'
import { Promised } from '../maybe-promise.js'

/** Whoever ends a run: is told what to send, at most once, last, and in the request's own async context. */
export interface Settling<End = RunEnd> {
  settled(end: End): void
}

/** Those who wait for one end: mostly one. */
export type Settlings<End> = Settling<End> | readonly Settling<End>[] | undefined

export function withAnother<End>(settlings: Settlings<End>, another: Settling<End>): Settlings<End> {
  return settlings === undefined ? another : [settlings, another].flat()
}

export function tellEnd<End>(settlings: Settlings<End>, end: End): void {
  if (isList(settlings)) for (const each of settlings) tellOne(each, end)
  else if (settlings !== undefined) tellOne(settlings, end)
}

function isList<End>(settlings: Settlings<End>): settlings is readonly Settling<End>[] {
  return Array.isArray(settlings)
}

function tellOne<End>(settling: Settling<End>, end: End): void {
  try {
    settling.settled(end)
  } catch (error) {
    rethrow(error)
  }
}

/** For whoever waits for the end by a promise. */
export class PromisedEnd<End = RunEnd> extends Promised<End> implements Settling<End> {
  settled(end: End): void {
    this.tell(end)
  }
}
