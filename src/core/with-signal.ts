/**
 * An object with a `signal` that is made when somebody asks for it. One getter for all of them: V8 keeps the pair of a
 * getter and a setter among its old objects, and where each object has a pair of its own, each keeps all that its getter
 * can see until the old space is collected. That was half of the time of a run.
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
