import type { IncomingMessage } from 'node:http'

/** "{webhook_receiver_url}/api/service/webhook-event/<type>", below any mount point. */
const DELIVERY_PATH = /\/api\/service\/webhook-event\/([^/]+)\/?$/

/** The type in a delivery's path, as written there; `null` if the path is not a delivery's. */
export function typeInPath(req: IncomingMessage): string | null {
  // Express and Connect cut the mount point off `url`, and `{webhook_receiver_url}` may have a path.
  const { originalUrl = req.url ?? '' } = req as { originalUrl?: string }
  const [path = ''] = originalUrl.split('?', 1)
  const written = DELIVERY_PATH.exec(path)?.[1]
  if (written === undefined) return null
  try {
    return decodeURIComponent(written)
  } catch {
    return written // Malformed percent-encoding: matches no event type.
  }
}
