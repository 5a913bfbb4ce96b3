/** The values of a header (name in lower case), one per line. */
export function headerLines(rawHeaders: readonly string[], name: string): readonly string[] {
  let lines: string[] | undefined
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const each = rawHeaders[i] as string
    if (each.length !== name.length || each.toLowerCase() !== name) continue
    lines ??= []
    lines.push(rawHeaders[i + 1] as string)
  }
  return lines ?? NO_LINES
}

/** The first of them; `undefined`: there is none. */
export function firstHeaderLine(rawHeaders: readonly string[], name: string): string | undefined {
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const each = rawHeaders[i] as string
    if (each.length === name.length && each.toLowerCase() === name) return rawHeaders[i + 1]
  }
  return undefined
}

const NO_LINES: readonly string[] = []
