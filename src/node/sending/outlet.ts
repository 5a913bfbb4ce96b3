import { ServerResponse } from 'node:http'

/** The functions that send a response, as they were before the middleware replaced them. */
export interface Outlet extends Senders {
  readonly destroy: ServerResponse['destroy']
  readonly emit: (this: ServerResponse, event: string | symbol, ...args: unknown[]) => boolean
  readonly on: ServerResponse['on']
  /** Added by compression. */
  readonly flush?: () => void
}

/** Those of them that send. */
export interface Senders {
  readonly writeHead: (this: ServerResponse, status: number, ...rest: unknown[]) => ServerResponse
  readonly write: (this: ServerResponse, chunk: unknown, encoding?: unknown, callback?: unknown) => boolean
  readonly end: (this: ServerResponse, chunk?: unknown, encoding?: unknown, callback?: unknown) => ServerResponse
  readonly flushHeaders: ServerResponse['flushHeaders']
}

export function getOutlet(res: ServerResponse): Outlet {
  if (isNodes(res as ServerResponse & Outlet)) return NODES
  const { writeHead, write, end, flushHeaders, destroy, emit, on, flush } = res as ServerResponse & Outlet
  return { writeHead, write, end, flushHeaders, destroy, emit, on, flush } as Outlet
}

export function pickSenders({ writeHead, write, end, flushHeaders }: Senders): Senders {
  return { writeHead, write, end, flushHeaders }
}

/** If false, a wrapper of `end` may add to the body: then a length is only announced if the handler announced one. */
export function isEndNodes({ end }: Pick<Outlet, 'end'>): boolean {
  return end === NODES.end
}

export function isWriteNodes({ write }: Pick<Outlet, 'write'>): boolean {
  return write === NODES.write
}

const { writeHead, write, end, flushHeaders, destroy, emit, on } = ServerResponse.prototype
/** Shared by all responses whose functions were not wrapped. */
const NODES = Object.freeze({ writeHead, write, end, flushHeaders, destroy, emit, on }) as unknown as Outlet

function isNodes(res: ServerResponse & Outlet): boolean {
  return (
    res.end === end &&
    res.write === write &&
    res.writeHead === writeHead &&
    res.flushHeaders === flushHeaders &&
    res.destroy === destroy &&
    res.emit === emit &&
    res.on === on &&
    res.flush === undefined
  )
}

/**
 * Wakes a handler that waits for 'drain'. compression keeps its listeners on its own stream, which its `on` returns.
 */
export function drain(res: ServerResponse, outlet: Outlet): void {
  const sink = outlet.on.call(res, 'drain', ignore)
  sink.off('drain', ignore)
  res.emit('drain')
  if (sink !== res) sink.emit('drain')
}

function ignore(): void {}
