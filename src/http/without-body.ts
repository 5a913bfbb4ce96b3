/** Known across an ES module and a CommonJS copy of this file in one process. */
const WITHOUT_BODY = Symbol.for('once-per-key.withoutBody')

/** Marks a `fingerprint` that does not look at the body, so it is right although nobody has read the body yet. */
export function withoutBody<Req>(fingerprint: (request: Req) => unknown): (request: Req) => unknown {
  return Object.assign((request: Req) => fingerprint(request), { [WITHOUT_BODY]: true })
}

export function isWithoutBody(fingerprint: object): boolean {
  return WITHOUT_BODY in fingerprint
}
