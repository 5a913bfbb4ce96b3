import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type Sqlite from 'better-sqlite3'
import { idempotency } from 'once-per-key'
import { SqliteStore } from 'once-per-key/sqlite'
import { type Payout, payoutHandler, sendPayout } from '../payout.js'
import { loadPeer } from '../peer-packages.js'
import { KEY, MERCHANT, type Open, type Protection } from '../protection.js'

/** A transaction that writes the payout, and no protection. */
export const plainSqlite: Open = async (work) => {
  const { insert, close } = openFile()
  return { handlers: [payoutHandler(async (req) => insert(await work(req)))], close }
}

/** Two statements by hand, in the transaction of the payout. */
export const floorSqliteInside: Open = async (work) => {
  const { database, insert, claim, complete, answerOf, close } = openFile()
  return {
    handlers: [
      async (req, res) => {
        const key = req.headers[KEY] as string
        const payout = await work(req)
        const pay = database.transaction(() => (claim(key) ? complete(key, insert(payout)) : answerOf(key)))
        sendPayout(res, pay.immediate())
      },
    ],
    close,
  }
}

/** The same two statements around the transaction of the payout. */
export const floorSqliteAround: Open = async (work) => {
  const { insert, claim, complete, answerOf, close } = openFile()
  return {
    handlers: [
      async (req, res) => {
        const key = req.headers[KEY] as string
        sendPayout(res, claim(key) ? complete(key, insert(await work(req))) : answerOf(key))
      },
    ],
    close,
  }
}

/** This library: the record is completed in the transaction of the payout. */
export const oursSqliteInside: Open = async (work) => {
  const { store, once, insert, close } = openStore()
  return {
    handlers: [
      once,
      async (req, res) => {
        const payout = await work(req)
        await store.transaction(req.idempotency, () => sendPayout(res, insert(payout)))
      },
    ],
    close,
  }
}

/** This library: the record is completed after the transaction of the payout. */
export const oursSqliteAround: Open = async (work) => {
  const { once, insert, close } = openStore()
  return { handlers: [once, payoutHandler(async (req) => insert(await work(req)))], close }
}

/** As durable as the store makes its own connection. */
function openFile() {
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-bench-'))
  const Database = loadPeer<typeof Sqlite>('better-sqlite3')
  const database = new Database(join(folder, 'bench.db'))
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.exec(`
    CREATE TABLE payouts (id TEXT PRIMARY KEY, answer TEXT NOT NULL);
    CREATE TABLE keys (key TEXT PRIMARY KEY, answer TEXT)`)
  const inserting = database.prepare('INSERT INTO payouts VALUES (?, ?)')
  const claiming = database.prepare('INSERT INTO keys (key) VALUES (?) ON CONFLICT DO NOTHING')
  const completing = database.prepare('UPDATE keys SET answer = ? WHERE key = ?')
  const reading = database.prepare<[string], { answer: string | null }>('SELECT answer FROM keys WHERE key = ?')
  return {
    database,
    insert(payout: Payout): Payout {
      inserting.run(payout.location, JSON.stringify(payout.body))
      return payout
    },
    claim: (key: string) => claiming.run(key).changes === 1,
    complete(key: string, payout: Payout): Payout {
      completing.run(JSON.stringify(payout), key)
      return payout
    },
    answerOf(key: string): Payout {
      const answer = reading.get(key)?.answer
      return answer ? JSON.parse(answer) : { status: 409, location: '/', body: { error: 'in flight' } }
    },
    async close() {
      database.close()
      rmSync(folder, { recursive: true })
    },
  }
}

function openStore() {
  const file = openFile()
  const store = new SqliteStore({ database: file.database })
  const once = idempotency({ store, scope: (req) => req.get(MERCHANT) })
  const close: Protection['close'] = async () => {
    await once.idle()
    await file.close()
  }
  return { ...file, store, once, close }
}
