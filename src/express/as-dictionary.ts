import { IncomingMessage, ServerResponse } from 'node:http'

/**
 * Makes adding properties cheap. Express changes the prototype of each request and response, and V8 before 13 (Node 24)
 * shares no hidden class between such objects: each property added afterwards, including Node's `statusMessage`, costs
 * a hidden class of some 1.5 kB that outlives the request. Deleting a property turns an object into a dictionary, which
 * avoids that; every emitter has the property that is deleted here. Does nothing without Express.
 */
export function asDictionary(message: IncomingMessage | ServerResponse): void {
  if (SHARES_HIDDEN_CLASSES) return
  const prototype = Object.getPrototypeOf(message)
  if (prototype === ServerResponse.prototype || prototype === IncomingMessage.prototype) return
  const emitter = message as { _maxListeners?: number | undefined }
  const { _maxListeners } = emitter
  // Not `delete`, which throws if the property cannot be deleted.
  if (Reflect.deleteProperty(emitter, '_maxListeners')) emitter._maxListeners = _maxListeners
}

const SHARES_HIDDEN_CLASSES = Number.parseInt(process.versions.v8, 10) >= 13
