import { ServerResponse } from 'node:http'
import * as pretend from './internals.js'

/** The functions through which a response leaves, as they were before the middleware took their place. */
export interface Outlet {
  readonly writeHead: (this: ServerResponse, status: number, statusMessage?: string) => ServerResponse
  readonly write: (this: ServerResponse, chunk: unknown, encoding?: unknown, callback?: unknown) => boolean
  readonly end: (this: ServerResponse, chunk?: unknown, encoding?: unknown, callback?: unknown) => ServerResponse
  readonly flushHeaders: ServerResponse['flushHeaders']
  readonly destroy: ServerResponse['destroy']
  readonly emit: (this: ServerResponse, event: string | symbol, ...args: unknown[]) => boolean
  readonly on: ServerResponse['on']
  /** compression's. */
  readonly flush?: () => void
}

export function outletOf(res: ServerResponse): Outlet {
  const { writeHead, write, end, flushHeaders, destroy, emit, on, flush } = res as ServerResponse & Outlet
  return { writeHead, write, end, flushHeaders, destroy, emit, on, flush } as Outlet
}

/** Those of them that send. */
export function sendersOf(outlet: Outlet): Pick<Outlet, 'writeHead' | 'write' | 'end' | 'flushHeaders'> {
  const { writeHead, write, end, flushHeaders } = outlet
  return { writeHead, write, end, flushHeaders }
}

/** If not, whoever wrapped `end` may add to the body: then a length is announced only where the handler announced one. */
export function isEndNodes({ end }: Pick<Outlet, 'end'>): boolean {
  return end === NODES_END
}

const NODES_END: unknown = ServerResponse.prototype.end

/** Puts back what the middleware replaced: an error page is to follow. */
export function giveBack(res: ServerResponse, outlet: Outlet): void {
  const { destroy, emit } = outlet
  Object.assign(res, { ...sendersOf(outlet), destroy, emit })
  pretend.notEnded(res)
}

/** Lets a handler go on that waits for 'drain'. compression keeps its listeners on its own stream, and answers `on` with that. */
export function drain(res: ServerResponse, outlet: Outlet): void {
  const sink = outlet.on.call(res, 'drain', ignore)
  sink.off('drain', ignore)
  res.emit('drain')
  if (sink !== res) sink.emit('drain')
}

function ignore(): void {}
