// The project's address. `repository` of package.json is the one place where it is filled in: npm derives `homepage` and
// `bugs` from it, and the build and the published pages what they link to. Until then nothing names an address.

/** Such as `https://github.com/owner/name`; `null` while `repository` is not filled in. */
export function addressOf({ repository }) {
  const written = typeof repository === 'string' ? repository : (repository?.url ?? '')
  if (written === '') return null
  const url = written
    .replace(/^github:/, 'https://github.com/')
    .replace(/^git\+/, '')
    .replace(/\.git$/, '')
  if (!/^https:\/\/[^/\s]+(?:\/[^/\s]+)+$/.test(url)) throw new Error(`repository of package.json: ${written}`)
  return url
}

/** Where a file of this version is shown. */
export function fileAddress(manifest, path) {
  const address = addressOf(manifest)
  return address === null ? null : `${address}/blob/v${manifest.version}/${path}`
}

/** Where messages point to: the folder in the package, as long as there is no address. */
export function documentationOf(manifest) {
  return fileAddress(manifest, 'docs') ?? `${manifest.name}/docs`
}
