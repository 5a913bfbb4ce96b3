import type { Target } from './target.js'

const KEYS_A_STEP = 500

/** The storage keys of all records that are kept, some at a time. */
export async function* walkStorageKeys(target: Target): AsyncGenerator<readonly string[]> {
  switch (target.kind) {
    case 'redis':
      for (const server of target.servers) {
        const match = `${target.prefix.replace(/[\\*?[\]^]/g, '\\$&')}*`
        for await (const keys of server.scanStream({ match, count: KEYS_A_STEP, type: 'string' })) {
          yield (keys as string[]).map((key) => key.slice(target.prefix.length))
        }
      }
      return
    case 'postgres': {
      const text = `SELECT name, pg_catalog.encode(id, 'hex') AS id FROM "${target.schema}".records
        WHERE id OPERATOR(pg_catalog.>) pg_catalog.decode($1, 'hex')
          AND extract(epoch FROM pg_catalog.now()) OPERATOR(pg_catalog.*) 1000 OPERATOR(pg_catalog.<) expires_at
        ORDER BY id LIMIT ${KEYS_A_STEP}`
      for (let after = ''; ; ) {
        const { rows } = await target.pool.query<{ name: string; id: string }>(text, [after])
        yield rows.map(({ name }) => name)
        const last = rows.at(-1)
        if (last === undefined || rows.length < KEYS_A_STEP) return
        after = last.id
      }
    }
    case 'mysql': {
      const sql = `SELECT CONVERT(name USING utf8mb4) AS name, HEX(id) AS id FROM \`${target.prefix}records\`
        WHERE id > UNHEX(?) AND expires_at > UNIX_TIMESTAMP() * 1000 ORDER BY id LIMIT ${KEYS_A_STEP}`
      for (let after = ''; ; ) {
        const rows = await target.rows(sql, [after])
        yield rows.map(({ name }) => String(name))
        const last = rows.at(-1)
        if (last === undefined || rows.length < KEYS_A_STEP) return
        after = String(last.id)
      }
    }
    case 'sqlite': {
      const text = `SELECT id, key FROM main."${target.prefix}records" WHERE id > ? AND expires_at > ? ORDER BY id LIMIT ${KEYS_A_STEP}`
      for (let after = 0; ; ) {
        const rows = target.database.prepare(text).all(after, Date.now()) as { id: number; key: string }[]
        yield rows.map(({ key }) => key)
        const last = rows.at(-1)
        if (last === undefined || rows.length < KEYS_A_STEP) return
        after = last.id
      }
    }
    case 'store':
  }
}
