import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe } from 'vitest'
import type { Backing } from '../../examples/payments/backing.js'
import { openSqlite } from '../../examples/payments/sqlite.js'
import { operationsTable } from './operations-table.js'
import { startService } from './payments-service.js'

describe('on SQLite', () => {
  const folder = mkdtempSync(join(tmpdir(), 'payments-sqlite-'))
  let ground: Backing

  beforeAll(async () => {
    ground = await openSqlite(join(folder, 'payments.db'), pino({ level: 'silent' }))
  })

  afterAll(async () => {
    await ground.close()
    rmSync(folder, { recursive: true })
  })

  operationsTable(() => startService(ground))
})
