// The recipe's server as a process, with a bank in a file that outlives it.
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import Database from 'better-sqlite3'
import { runner } from 'once-per-key/run'
import { SqliteStore } from 'once-per-key/sqlite'
import { paymentsServer } from '../../recipes/agents/payments-server.js'

const { FOLDER = '', DIES_AFTER_TRANSFER } = process.env
const ledger = new Database(`${FOLDER}/bank.db`)
ledger.exec('CREATE TABLE IF NOT EXISTS transfers (key TEXT PRIMARY KEY, amount INTEGER)')
ledger.exec('CREATE TABLE IF NOT EXISTS calls (key TEXT)')
const store = new SqliteStore({ database: new Database(`${FOLDER}/records.db`) })
const once = runner({ store, name: 'create_payment', leaseMs: 3_000, storeTimeoutMs: 300, maxRunMs: 60_000 })
const bank = {
  async transfer(amount: number, key: string) {
    ledger.prepare('INSERT INTO calls VALUES (?)').run(key)
    ledger.prepare('INSERT OR IGNORE INTO transfers VALUES (?, ?)').run(key, amount)
    if (DIES_AFTER_TRANSFER !== undefined) process.kill(process.pid, 'SIGKILL')
    return { id: `tr_${key}` }
  },
}

await paymentsServer({ once, bank, account: 'local' }).connect(new StdioServerTransport())
