import { aboutCode } from '../../core/documentation.js'
import { mediaTypeOf } from './content-type.js'

/** Limits the warnings and the set, because clients choose the types. */
const MOST_WARNINGS = 20

const warnedOf = new Set<string>()

/** The detail for a client whose content type no parser covers. */
export function unsupportedDetail(contentType: string): string {
  const type = mediaTypeOf(contentType)
  if (type !== null) return `This API does not accept bodies of the content type ${type}.`
  return contentType === ''
    ? 'The request has a body, but no Content-Type header.'
    : 'The Content-Type header is not a valid media type.'
}

/** Warns once per type and process: it may be the application's mistake, which would otherwise go unnoticed. */
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
      `different requests would look the same. To accept them, mount their parser before it, such as ${parser}.${last} ${aboutCode('content_type_unsupported')}`,
    { type: 'OncePerKeyWarning', code: 'ONCE_PER_KEY_CONTENT_TYPE_UNSUPPORTED' },
  )
}
