// A process with a store of its own, which does what it is told and replies.
import { SqliteStore } from 'once-per-key/sqlite'
import { type DriverName, openDatabase } from './drivers.js'
import type { Request, Response } from './store-processes.js'

const driver = process.argv[2] as DriverName
let store: SqliteStore | undefined

process.on('message', async ({ number, command, args }: Request) => {
  try {
    if (command === 'open') {
      const [file] = args as [string]
      store = new SqliteStore({ database: openDatabase(driver, file), busyTimeoutMs: 30_000 })
      tell({ number, reply: undefined })
      return
    }
    const run = (store as unknown as Record<string, (...args: readonly unknown[]) => Promise<unknown>>)[command]
    tell({ number, reply: await run?.call(store, ...args) })
  } catch (error) {
    tell({ number, error: String(error) })
  }
})

function tell(response: Response): void {
  process.send?.(response)
}
