import { ServerResponse } from 'node:http'

/** The functions that send a response, as they were before the middleware replaced them. */
export interface OriginalMethods extends SendingMethods {
  readonly destroy: ServerResponse['destroy']
  readonly emit: (this: ServerResponse, event: string | symbol, ...args: unknown[]) => boolean
  readonly on: ServerResponse['on']
  /** Added by compression. */
  readonly flush?: () => void
}

/** Those of them that send. */
export interface SendingMethods {
  readonly writeHead: (this: ServerResponse, status: number, ...rest: unknown[]) => ServerResponse
  readonly write: (this: ServerResponse, chunk: unknown, encoding?: unknown, callback?: unknown) => boolean
  readonly end: (this: ServerResponse, chunk?: unknown, encoding?: unknown, callback?: unknown) => ServerResponse
  readonly flushHeaders: ServerResponse['flushHeaders']
}

export function getOriginalMethods(res: ServerResponse): OriginalMethods {
  if (isNodes(res as ServerResponse & OriginalMethods)) return NODES
  const { writeHead, write, end, flushHeaders, destroy, emit, on, flush } = res as ServerResponse & OriginalMethods
  return { writeHead, write, end, flushHeaders, destroy, emit, on, flush } as OriginalMethods
}

export function pickSendingMethods({ writeHead, write, end, flushHeaders }: SendingMethods): SendingMethods {
  return { writeHead, write, end, flushHeaders }
}

/** Whether nobody had wrapped one of them before the middleware. */
export function areUnwrappedNodeMethods(outlet: OriginalMethods): boolean {
  return outlet === NODES
}

/** If false, a wrapper of `end` may add to the body: then a length is only announced if the handler announced one. */
export function hasNodeEnd({ end }: Pick<OriginalMethods, 'end'>): boolean {
  return end === NODES.end
}

export function hasNodeWrite({ write }: Pick<OriginalMethods, 'write'>): boolean {
  return write === NODES.write
}

const { writeHead, write, end, flushHeaders, destroy, emit, on } = ServerResponse.prototype
/** Shared by all responses whose functions were not wrapped. */
const NODES = Object.freeze({ writeHead, write, end, flushHeaders, destroy, emit, on }) as unknown as OriginalMethods

function isNodes(res: ServerResponse & OriginalMethods): boolean {
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
export function emitDrain(res: ServerResponse, outlet: OriginalMethods): void {
  const sink = outlet.on.call(res, 'drain', ignore)
  sink.off('drain', ignore)
  res.emit('drain')
  if (sink !== res) sink.emit('drain')
}

function ignore(): void {}
