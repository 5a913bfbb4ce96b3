import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Backing } from '../../examples/payments/backing.js'
import { openSqlite } from '../../examples/payments/sqlite.js'
import { paysInOneTransaction, resumesOrders } from './crashes.js'
import { operationsTable } from './operations-table.js'
import { type Service, startService } from './payments-service.js'

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

  describe('an owner that dies between effect and answer', () => {
    const PATH = '/api/service/payout/create'
    let service: Service

    beforeAll(async () => {
      service = await startService(ground)
    })
    afterAll(() => service.stop())

    test('the handler commits its effect with the record', async () => {
      expect((await service.send('/demo/handler', { method: 'GET' })).json).toEqual({ handler: 'transaction' })
    })

    test.each([
      ['leaves none of it, and the retry pays once', {}, 0, 1],
      ['has paid where its handler is naive, and the retry pays again', { 'x-demo-handler': 'naive' }, 1, 2],
    ])('%s', async (_name, headers, before, after) => {
      const name = randomUUID()
      const body = await service.sample(PATH)
      const request = { body, key: name, headers: { ...headers, 'x-demo-operation': name } }
      const dying = { ...request, headers: { ...request.headers, 'x-demo-crash': 'true' } }
      await expect(service.send(PATH, dying)).rejects.toThrow()
      const runs = async () => (await service.send(`/demo/operations/${name}`, { method: 'GET' })).json.runs
      expect(await runs()).toBe(before)
      const retry = await service.send(PATH, request)
      expect([retry.status, retry.headers.get('x-demo-outcome')]).toEqual([201, null])
      expect(await runs()).toBe(after)
    })

    resumesOrders(() => service)
    paysInOneTransaction(() => service)
  })
})
