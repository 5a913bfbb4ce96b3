import { aboutCode } from '../core/documentation.js'
import { mediaTypeOf } from './content-type.js'

/** Clients choose what they send: neither the set nor the log may grow with it. */
const MOST_WARNINGS = 20

const warnedOf = new Set<string>()

/** What the client is told about a content type that no parser covers. */
export function unsupportedDetail(contentType: string): string {
  const type = mediaTypeOf(contentType)
  if (type !== null) return `Bodies of the content type ${type} are not read here.`
  return contentType === ''
    ? 'The request has a body, but no header Content-Type that tells how to read it.'
    : 'The header Content-Type is not a media type, so it does not tell how to read the body.'
}

/** Once for each type in a process: it may be the application's mistake all the same, which nobody else would see. */
export function warnOfUnsupported(contentType: string): void {
  const type = mediaTypeOf(contentType)
  const name = type ?? 'without a valid content type'
  if (warnedOf.has(name) || warnedOf.size >= MOST_WARNINGS) return
  warnedOf.add(name)
  const bodies = type === null ? 'Bodies without a valid content type are' : `Bodies of the content type ${type} are`
  const parser = type === null ? 'express.raw({ type: () => true })' : `express.raw({ type: '${type}' })`
  const last = warnedOf.size < MOST_WARNINGS ? '' : ' Further types will be refused without a warning.'
  process.emitWarning(
    `${bodies} refused with 415 content_type_unsupported: no parser has read them before the idempotency middleware, so two ` +
      `different requests would look the same. To take them, mount their parser before it, such as ${parser}.${last} ${aboutCode('content_type_unsupported')}`,
    { type: 'OncePerKeyWarning', code: 'ONCE_PER_KEY_CONTENT_TYPE_UNSUPPORTED' },
  )
}
