/** What was found of one thing. `red`: records can be lost, or commands fail. `yellow`: to be thought about. */
export interface Finding {
  readonly color: 'green' | 'yellow' | 'red'
  readonly about: string
  readonly found: string
  /** What to do; where there is nothing to do, absent. */
  readonly wayOut?: string | undefined
}

export function createGreenFinding(about: string, found: string): Finding {
  return { color: 'green', about, found }
}

export function createYellowFinding(about: string, found: string, wayOut: string): Finding {
  return { color: 'yellow', about, found, wayOut }
}

export function createRedFinding(about: string, found: string, wayOut: string): Finding {
  return { color: 'red', about, found, wayOut }
}

/** `bad` where it is so, else green. */
export function createFindingIfBad(
  isBad: boolean,
  about: string,
  found: string,
  bad: typeof createRedFinding,
  wayOut: string,
): Finding {
  return isBad ? bad(about, found, wayOut) : createGreenFinding(about, found)
}
