/**
 * An object with a `signal` that is made when somebody asks for it. One getter for all of them: V8 keeps the pair of a
 * getter and a setter among its old objects, and where each object has a pair of its own, each keeps all that its getter
 * can see until the old space is collected.
 */
export class WithSignal {
  declare readonly signal: AbortSignal
  /** No private field: whoever looks through a Proxy, or at a copy, is given the signal too. */
  declare readonly [MAKE]: () => AbortSignal

  constructor(make: () => AbortSignal) {
    Object.defineProperty(this, MAKE, { value: make })
    Object.defineProperty(this, 'signal', SHOWN)
  }
}

const MAKE = Symbol('makes the signal')

const SHOWN = {
  get(this: WithSignal) {
    return this[MAKE]()
  },
  enumerable: true,
  configurable: true,
}
