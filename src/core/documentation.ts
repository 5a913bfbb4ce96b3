/**
 * Where messages point to. The project has no address yet; until then it is the folder in the package. This is the one place
 * to fill in: see RELEASING.md.
 */
const DOCS = 'once-per-key/docs'

/** The page's entry about a code. */
export function aboutCode(code: string): string {
  return `See ${DOCS}/errors.md#${code}`
}
