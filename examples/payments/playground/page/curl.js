/**
 * The line that sends a request from a POSIX shell.
 *
 * @param {{ readonly url: string, readonly headers: readonly (readonly [name: string, value: string])[], readonly body: string }} request
 */
export function curlLine({ url, headers, body }) {
  const parts = headers.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`)
  // --data-raw: a body that begins with @ names no file.
  return ['curl -i', quoted(url), ...parts, '--data-raw', quoted(body)].join(' ')
}

/** @param {string} text */
function quoted(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
