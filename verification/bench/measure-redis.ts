import { startRedis } from '../../test/support/redis-server.js'
import { recordSizes } from './record-sizes.js'

const server = await startRedis()
try {
  console.log('A completed record with an answer of 1 KiB: bytes in Redis (MEMORY USAGE key SAMPLES 0).')
  for (const [how, bytes] of Object.entries(await recordSizes(server.port))) console.log(String(bytes).padStart(6), how)
} finally {
  await server.close()
}
