/** Where a Redis is, and how to get in. */
export interface RedisPlace {
  readonly host: string
  readonly port: number
  readonly db: number
  readonly username?: string
  readonly password?: string
  /** `{}`: by TLS, with Node's defaults. */
  readonly tls?: object
}

/** `redis[s]://[[user]:password@]host[:port][/db]`; `null`: it is none. */
export function redisPlaceOf(text: string): RedisPlace | null {
  if (!URL.canParse(text)) return null
  const { protocol, hostname, port, pathname, username, password, search, hash } = new URL(text)
  if (protocol !== 'redis:' && protocol !== 'rediss:') return null
  const [, db] = /^\/?(\d{0,4})$/.exec(pathname) ?? []
  // What follows the path means something else to each client: it is not guessed.
  if (hostname === '' || port === '0' || db === undefined || search !== '' || hash !== '') return null
  try {
    return {
      host: hostname.replace(/^\[(.*)\]$/, '$1'),
      port: Number(port || 6379),
      db: Number(db),
      ...(username && { username: decodeURIComponent(username) }),
      ...(password && { password: decodeURIComponent(password) }),
      ...(protocol === 'rediss:' && { tls: {} }),
    }
  } catch {
    return null // A per cent sign that encodes nothing.
  }
}
