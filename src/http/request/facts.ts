/** Facts about a request that a binding gives to the core, without judging them. */
export interface RequestFacts<Req = unknown> {
  /** The framework's request, which the option functions (`scope`, `skip`, …) receive. */
  readonly request: Req
  /** In upper case. */
  readonly method: string
  /** Path and query as sent, including the mount point. */
  readonly target: string
  /** Name, value, name, value, … as received, decoded as Latin-1 (Node's `rawHeaders`). */
  readonly rawHeaders: readonly string[]
  /**
   * Whether several lines of a header arrive as one value, joined by a comma and a space, as Fetch's `Headers` does.
   * @default false
   */
  readonly joinsHeaderLines?: boolean | undefined
  /** The body parser's result; `undefined` if there is none. */
  readonly body: unknown
  /** Whether anybody has read the body's stream. */
  readonly bodyWasRead: boolean
  /**
   * Why `body` is not what was sent, for a binding that reads bodies itself: it is larger than the limit, or a form with too many
   * fields (`body` is absent), or is not the JSON or the UTF-8 that its content type claims (`body` is its bytes).
   */
  readonly bodyFault?: 'too_large' | 'too_many_fields' | 'malformed' | undefined
  /** Whether the client has disconnected. Called while a duplicate waits (`inFlightWaitMs`). */
  isAbandoned(): boolean
}

/** Headers to add to the response of this one request, whatever it is; never stored. */
export type HeaderPairs = readonly (readonly [name: string, value: string])[]
