/** `throw undefined`, or `null`: to error handling it would look as if nothing had happened, so nobody would answer. */
export function nothingThrown(thrown: undefined | null): Error {
  return new TypeError(`The handler threw ${thrown}, not an Error.`)
}
