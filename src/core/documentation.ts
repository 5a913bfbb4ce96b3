/** The address of `docs`, which the build takes from package.json: scripts/address.mjs. */
declare const DOCUMENTATION: string | undefined

/** Where messages point to: the folder in the package, as long as the project has no address. */
const DOCS = typeof DOCUMENTATION === 'string' ? DOCUMENTATION : 'once-per-key/docs'

/** The page's entry for a code. */
export function aboutCode(code: string): string {
  return `See ${DOCS}/errors.md#${code}`
}
