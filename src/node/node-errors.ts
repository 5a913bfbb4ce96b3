/** Like Node's own errors, so that handlers that check the code keep working. */
function nodeError(Kind: typeof Error | typeof TypeError | typeof RangeError, code: string, message: string): Error {
  return Object.assign(new Kind(message), { code })
}

export function headersSentError(): Error {
  return nodeError(Error, 'ERR_HTTP_HEADERS_SENT', 'Cannot write headers after they are sent to the client')
}

export function invalidStatusError(status: unknown): Error {
  return nodeError(RangeError, 'ERR_HTTP_INVALID_STATUS_CODE', `Invalid status code: ${status}`)
}

export function invalidStatusMessageError(): Error {
  return nodeError(TypeError, 'ERR_INVALID_CHAR', 'Invalid character in statusMessage')
}

export function invalidChunkError(): Error {
  return nodeError(TypeError, 'ERR_INVALID_ARG_TYPE', 'The "chunk" argument must be a string, a Buffer or a Uint8Array')
}

/**
 * Passes Node's error to the callback of a write after the end. Node also emits 'error'; here a late write does no
 * harm.
 */
export function failLateWrite(done: Callback | undefined): false {
  if (done !== undefined) process.nextTick(done, nodeError(Error, 'ERR_STREAM_WRITE_AFTER_END', 'write after end'))
  return false
}

/** Passes Node's error to the callback of a write after `destroy()`. */
export function failWriteAfterDestroy(done: Callback | undefined): false {
  const message = 'Cannot call write after a stream was destroyed'
  if (done !== undefined) process.nextTick(done, nodeError(Error, 'ERR_STREAM_DESTROYED', message))
  return false
}

/** The error of an `end` after the response was sent. */
export function alreadyFinishedError(): Error {
  return nodeError(Error, 'ERR_STREAM_ALREADY_FINISHED', 'Cannot call end after a stream was finished')
}

/** The callback of `write` and `end`. */
export type Callback = (error?: Error | null) => void

/** Node accepts a callback in place of an earlier optional argument. */
export function pickCallback(given: unknown, callback: unknown): Callback | undefined {
  const found = typeof given === 'function' ? given : callback
  return typeof found === 'function' ? (found as Callback) : undefined // Fastify passes null.
}

/** `throw undefined`, or `null`: to error handling it would look as if nothing had happened, so nobody would answer. */
export function nothingThrownError(thrown: undefined | null): Error {
  return new TypeError(`The handler threw ${thrown}, not an Error.`)
}
