import type { IncomingMessage } from 'node:http'

/** "{webhook_receiver_url}/api/service/webhook-event/<type>": whatever the receiver is mounted at, and behind. */
const DELIVERY_PATH = /\/api\/service\/webhook-event\/([^/]+)\/?$/

/** The type that a delivery's path names, as written in it; `null`: it is no delivery's path. */
export function typeInPath(req: IncomingMessage): string | null {
  // Express and Connect cut the mount point off `url`, and `{webhook_receiver_url}` may have a path of its own.
  const { originalUrl = req.url ?? '' } = req as { originalUrl?: string }
  const [path = ''] = originalUrl.split('?', 1)
  const written = DELIVERY_PATH.exec(path)?.[1]
  if (written === undefined) return null
  try {
    return decodeURIComponent(written)
  } catch {
    return written // No event's type reads so.
  }
}
