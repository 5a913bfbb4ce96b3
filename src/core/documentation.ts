/**
 * Where messages point to. The project has no URL yet; until then it is the folder in the package. Fill it in here
 * only: see RELEASING.md.
 */
const DOCS = 'once-per-key/docs'

/** The page's entry for a code. */
export function aboutCode(code: string): string {
  return `See ${DOCS}/errors.md#${code}`
}
