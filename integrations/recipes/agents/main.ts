import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import Database from 'better-sqlite3'
import { runner } from 'once-per-key/run'
import { SqliteStore } from 'once-per-key/sqlite'
import { paymentsServer } from './payments-server.js'

/** A file, since an agent's client starts the server anew for each session: with `MemoryStore` each would pay again. */
const store = new SqliteStore({ database: new Database(process.env.PAYMENTS_FILE ?? 'payments.db') })
const once = runner({ store, name: 'create_payment' })
const bank = {
  async transfer(_amount: number, idempotencyKey: string) {
    return { id: `tr_${idempotencyKey}` } // Your bank, which removes what it gets twice under one key.
  },
}

// Over stdio there is one user. Over HTTP, make a server for each session, with the account of its access token.
await paymentsServer({ once, bank, account: 'local' }).connect(new StdioServerTransport())
