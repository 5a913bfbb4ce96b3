/**
 * What happened to a request, and what follows from it, in plain words.
 *
 * @param {import('./exchange.js').Exchange} exchange
 * @returns {string}
 */
export function toldOf({ decision, status, code, retryAfterMs }) {
  switch (decision) {
    case 'run':
      return 'The operation ran. Its answer was stored before the client saw it, so it is now safe to send the request again.'
    case 'found':
      return 'An earlier attempt had its effect but never answered. The handler of this one found the effect in its books and sent its answer; nothing ran again.'
    case 'resumed':
      return 'An earlier attempt died between two steps. This one went on after those that were recorded; none of them was done again.'
    case 'replayed':
      return 'The request got the stored answer of the first one with its key; nothing ran again.'
    case 'in_flight':
      return 'Another request with this key is still running. This one was told when to retry; nothing ran twice.'
    case 'mismatched':
      return 'The key belongs to another request. This one was refused with 409, and ran nothing.'
    case 'failed':
      if (retryAfterMs !== null)
        return `The service could not do it now (${status} ${code}). Send it again with the same key.`
      if (status >= 500)
        return `The service failed (${status} ${code}), perhaps after the effect. Send the same request again with the same key: the handler will know.`
      return `The service refused it (${status} ${code}). It had no effect, so the key is free: correct it, and send again.`
    default:
      return 'The client got no response, and cannot know whether it ran. With the same key it can simply send it again.'
  }
}

/**
 * A number of things.
 *
 * @param {number} number
 * @param {string} one
 * @param {string} [many]
 */
export function counted(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`
}
