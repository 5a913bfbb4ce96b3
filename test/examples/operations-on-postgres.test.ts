import { Pool } from 'pg'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { openPostgres } from '../../examples/payments/postgres.js'
import { type PostgresServer, startPostgres } from '../support/postgres-server.js'
import { paysInOneTransaction, resumesOrders } from './crashes.js'
import { operationsTable } from './operations-table.js'
import { type Service, startService } from './payments-service.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

describe('on Postgres', () => {
  let server: PostgresServer
  let ground: Awaited<ReturnType<typeof openPostgres>>

  beforeAll(async () => {
    server = await startPostgres()
    ground = await openPostgres(server.url(), pino({ level: 'silent' }))
  })

  afterAll(async () => {
    await ground.close()
    await server.close()
  })

  operationsTable(() => startService(ground))

  describe('an owner that dies between effect and answer', () => {
    const PATH = '/api/service/payout/create'
    let service: Service
    let operator: Pool

    beforeAll(async () => {
      operator = new Pool({ connectionString: server.url(), max: 1 })
      service = await startService(ground)
    })
    afterAll(async () => {
      await service.stop()
      await operator.end()
    })
    beforeEach(() => operator.query("DELETE FROM payments_books WHERE kind = 'payout'"))

    test('leaves no payout, and the retry makes the one', async () => {
      const body = await service.sample(PATH)
      await operator.query("DELETE FROM payments_books WHERE kind = 'payout'")
      const payouts = async () => (await operator.query("SELECT FROM payments_books WHERE kind = 'payout'")).rowCount
      const crash = { 'x-demo-crash': 'true' }
      await expect(service.send(PATH, { body, key: 'crash', headers: crash })).rejects.toThrow()
      expect(await payouts()).toBe(0)
      const retry = await service.send(PATH, { body, key: 'crash' })
      expect(retry.status).toBe(201)
      expect(await payouts()).toBe(1)
      expect((await service.send(PATH, { body, key: 'crash' })).headers.get('idempotent-replayed')).toBe('true')
      expect(await payouts()).toBe(1)
    })

    resumesOrders(() => service)
    paysInOneTransaction(() => service)
  })
})
