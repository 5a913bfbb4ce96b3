/** A registered symbol, so that an ES module and a CommonJS copy of this file share it. */
const WITHOUT_BODY = Symbol.for('once-per-key.withoutBody')

/** Marks a `fingerprint` that does not use the body, so that nobody needs to have read the body. */
export function withoutBody<Req>(fingerprint: (request: Req) => unknown): (request: Req) => unknown {
  return Object.assign((request: Req) => fingerprint(request), { [WITHOUT_BODY]: true })
}

export function isWithoutBody(fingerprint: object): boolean {
  return WITHOUT_BODY in fingerprint
}
