/** A figure over several rounds. */
export interface Spread {
  readonly median: number
  readonly least: number
  readonly most: number
}

/** Of an ascending list, by linear interpolation between the two nearest values; `NaN` of none. */
export function quantile(ascending: ArrayLike<number>, share: number): number {
  const position = (ascending.length - 1) * share
  const below = Math.floor(position)
  const low = ascending[below]
  const high = ascending[Math.ceil(position)]
  if (low === undefined || high === undefined) return Number.NaN
  return low + (high - low) * (position - below)
}

export function spreadOf(values: readonly number[]): Spread {
  const ascending = values.toSorted((a, b) => a - b)
  return { median: quantile(ascending, 0.5), least: quantile(ascending, 0), most: quantile(ascending, 1) }
}

/** Round by round, so that what slowed the machine for a while slowed both. */
export function ratioOf(values: readonly number[], baseline: readonly number[]): Spread {
  return spreadOf(pairs(values, baseline).map(([value, base]) => value / base))
}

export function differenceOf(values: readonly number[], baseline: readonly number[]): Spread {
  return spreadOf(pairs(values, baseline).map(([value, base]) => value - base))
}

function pairs(values: readonly number[], baseline: readonly number[]): [number, number][] {
  if (values.length !== baseline.length) throw new RangeError('Both need a value for each round.')
  return values.map((value, round) => [value, baseline[round] as number])
}
