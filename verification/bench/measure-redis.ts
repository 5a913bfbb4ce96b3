import { startRedis } from '../../test/support/redis-server.js'
import { recordSizes } from './record-sizes.js'
import { measureRedisCpu } from './redis-cpu.js'

const server = await startRedis()
try {
  console.log('A completed record with an answer of 1 KiB: bytes in Redis (MEMORY USAGE key SAMPLES 0).')
  for (const [how, bytes] of Object.entries(await recordSizes(server.port))) console.log(String(bytes).padStart(6), how)
  console.log('CPU of Redis a request, in µs (INFO cpu), 500 requests at a time; an answer of 150 bytes.')
  for (const [how, micros] of Object.entries(await measureRedisCpu(server.port))) {
    console.log(micros.toFixed(1).padStart(6), how)
  }
} finally {
  await server.close()
}
