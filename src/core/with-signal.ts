/**
 * An object with a `signal` that is made when somebody asks for it. One getter for all of them: where each object has a
 * getter of its own, each gets a hidden class of its own, and V8 keeps that, with all that the getter can see, until it
 * collects its old space. That was half of the time of a run.
 */
export class WithSignal {
  declare readonly signal: AbortSignal
  readonly #make: () => AbortSignal

  static readonly #shown = {
    get(this: WithSignal) {
      return this.#make()
    },
    enumerable: true,
    configurable: true,
  }

  constructor(make: () => AbortSignal) {
    this.#make = make
    Object.defineProperty(this, 'signal', WithSignal.#shown)
  }
}
