/** The known name that was probably meant; `null` if none is similar. */
export function nearestOf(name: string, known: readonly string[]): string | null {
  const mostEdits = Math.max(2, name.length / 3)
  let nearest: string | null = null
  let fewest = Number.POSITIVE_INFINITY
  for (const each of known) {
    const edits = editDistance(name, each)
    if (edits > mostEdits || edits >= fewest) continue
    nearest = each
    fewest = edits
  }
  return nearest
}

/** Levenshtein distance, ignoring case. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1]?.toLowerCase() === b[j - 1]?.toLowerCase()
      const replaced = (previous[j - 1] as number) + (same ? 0 : 1)
      current.push(Math.min(replaced, (previous[j] as number) + 1, (current[j - 1] as number) + 1))
    }
    previous = current
  }
  return previous[b.length] as number
}
