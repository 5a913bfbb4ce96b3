import type { LegacyKey } from '../options/body-field.js'
import { type KeyReading, readKeyLines } from './key.js'

/** Where a request may have its key. */
interface KeyPlaces {
  readonly header: string
  readonly legacyKey?: LegacyKey | undefined
}

/**
 * The key of a request, from the header's lines or the deprecated field. `null` if it has neither. `areJoined`: several lines would
 * arrive as one.
 */
export function chosenKey(
  lines: readonly string[],
  legacy: KeyReading | null,
  { header, legacyKey }: KeyPlaces,
  areJoined = false,
): KeyReading | null {
  if (lines.length === 0 || (legacy !== null && legacyKey?.whenBoth === 'field')) {
    return legacy && placed(legacy, 'The key in the body is not one')
  }
  const inHeader = placed(readKeyLines(lines, areJoined), `The header ${header} is not a key`)
  if (legacy === null || legacyKey?.whenBoth === 'header' || 'invalid' in inHeader) return inHeader
  if ('invalid' in legacy) return placed(legacy, 'The key in the body is not one')
  if (legacy.key === inHeader.key) return inHeader
  return {
    invalid: `The header ${header} and the body's ${JSON.stringify(legacyKey?.field)} differ; send one of them.`,
  }
}

/** Makes a sentence for the client of what is wrong. */
function placed(reading: KeyReading, place: string): KeyReading {
  return 'invalid' in reading ? { invalid: `${place}: ${reading.invalid}.` } : reading
}
