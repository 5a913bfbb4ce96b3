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
   * The headers as the application's code sees and changes them (Node's `req.headers`). What earlier middleware has put there counts where
   * `rawHeaders` has no line of that name.
   * @default none
   */
  readonly headers?: Readonly<Record<string, unknown>> | undefined
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
   * Whether whoever has read the body has found nothing in it, although one was announced: a chunked body can be empty, and a form
   * can be without fields, such as `&&&`.
   * @default false
   */
  readonly bodyIsEmpty?: boolean | undefined
  /**
   * Why `body` is not what was sent, for a binding that reads bodies itself: it is larger than the limit, or a form with too many
   * fields (`body` is absent), or is not the JSON or the UTF-8 that its content type claims (`body` is its bytes). For one that
   * does not: its parser shows nothing of it, and nobody can tell whether that is all (`body` is absent).
   */
  readonly bodyFault?: 'too_large' | 'too_many_fields' | 'malformed' | 'nothing_seen' | undefined
  /** Whether the client has disconnected. Called while a duplicate waits (`inFlightWaitMs`). */
  isAbandoned(): boolean
}

/** Headers to add to the response of this one request, whatever it is; never stored. */
export type HeaderPairs = readonly (readonly [name: string, value: string])[]

/** Where a header is looked up. */
export type HeaderSource = Pick<RequestFacts, 'rawHeaders' | 'headers'>

/** The values of a header (name in lower case) as received, one per line. */
export function getHeaderLines({ rawHeaders }: HeaderSource, name: string): readonly string[] {
  let lines: string[] | undefined
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const each = rawHeaders[i] as string
    if (each.length !== name.length || each.toLowerCase() !== name) continue
    const line = rawHeaders[i + 1] as string
    if (lines === undefined) lines = [line]
    else lines.push(line)
  }
  return lines ?? NO_LINES
}

/** The values that code in front has put under that name, which it may have written in any case. */
export function getHeaderObjectValues({ headers }: HeaderSource, name: string): readonly unknown[] {
  let values: unknown[] | undefined
  for (const each in headers) {
    if (each.length !== name.length || each.toLowerCase() !== name || !Object.hasOwn(headers, each)) continue
    const put = [headers[each]].flat().filter((value) => value !== undefined && value !== null)
    if (put.length > 0) values = values === undefined ? put : [...values, ...put]
  }
  return values ?? NO_LINES
}

/** The first line of a header, or what code in front has put in its place; `undefined`: there is none. */
export function getFirstHeaderLine(head: HeaderSource, name: string): string | undefined {
  const { rawHeaders } = head
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const each = rawHeaders[i] as string
    if (each.length === name.length && each.toLowerCase() === name) return rawHeaders[i + 1]
  }
  const [put] = getHeaderObjectValues(head, name)
  return put === undefined ? undefined : String(put)
}

const NO_LINES: readonly string[] = []

/** As sent, with parameters; `''` if it was not sent. */
export function getContentType(head: HeaderSource): string {
  return getFirstHeaderLine(head, 'content-type') ?? ''
}

export function isMultipart(contentType: string): boolean {
  return /^\s*multipart\//i.test(contentType)
}

/** Whether it is JSON or a form, which a parser turns into members. */
export function hasMembers(contentType: string): boolean {
  return /^\s*application\/(?:(?:[^;\s]*\+)?json|x-www-form-urlencoded)\s*(?:;|$)/i.test(contentType)
}

export function isForm(contentType: string): boolean {
  return /^\s*application\/x-www-form-urlencoded\s*(?:;|$)/i.test(contentType)
}

export function isJson(contentType: string): boolean {
  return /^\s*[^/;\s]+\/(?:[^;\s]*\+)?json\s*(?:;|$)/i.test(contentType)
}

/** RFC 9110 §8.3.1, "media-type", without its parameters. The length is limited because clients choose it. */
const MEDIA_TYPE = /^\s*([\w!#$%&'*+.^`|~-]{1,64}\/[\w!#$%&'*+.^`|~-]{1,64})\s*(?:;|$)/

/** The type alone in lower case, for messages; `null` if there is none, or if it is malformed. */
export function parseMediaType(contentType: string): string | null {
  return MEDIA_TYPE.exec(contentType)?.[1]?.toLowerCase() ?? null
}
