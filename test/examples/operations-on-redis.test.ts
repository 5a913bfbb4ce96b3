import { afterAll, beforeAll, describe } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { resumesOrders } from './crashes.js'
import { operationsTable } from './operations-table.js'
import { type Service, startService } from './payments-service.js'
import { openGround, type RedisGround } from './redis-ground.js'

describe('on Redis', () => {
  let server: RedisServer
  let ground: RedisGround

  beforeAll(async () => {
    server = await startRedis()
    ground = await openGround(server)
  })

  afterAll(async () => {
    await ground.close()
    await server.close()
  })

  operationsTable(() => startService(ground))

  describe('an owner that dies between two steps', () => {
    let service: Service

    beforeAll(async () => {
      service = await startService(ground)
    })
    afterAll(() => service.stop())

    resumesOrders(() => service)
  })
})
