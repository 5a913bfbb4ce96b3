// How long `once-per-key unknown` takes among a million records, and what a client beside it notices. An argument: how many.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { Redis } from 'ioredis'
import type { Store } from 'once-per-key/core'
import { PostgresStore } from 'once-per-key/postgres'
import { RedisStore } from 'once-per-key/redis'
import { Pool } from 'pg'
import { startPostgres } from '../../test/support/postgres-server.js'
import { startRedis } from '../../test/support/redis-server.js'

const RECORDS = Number(process.argv[2] ?? 1_000_000)
const UNKNOWN = 100
const PAUSE_MS = 2
const ALONE_MS = 10_000
const OWN = { token: 'owner', scope: 'acme', fingerprint: 'f', attempt: 1, uncertain: false, retentionMs: 86_400_000 }
const ANSWER = { status: 201, statusMessage: '', headers: [], body: Buffer.alloc(200, '{') }

interface Ground {
  readonly client: Store
  readonly url: string
  copy(copies: number): Promise<unknown>
  close(): Promise<unknown>
}

async function onRedis(): Promise<Ground> {
  const server = await startRedis('--appendonly', 'no')
  const one = new Redis(server.port)
  const copied = `for i = ARGV[1], ARGV[2] do redis.call('COPY', 'once-per-key:acme:0', 'once-per-key:acme:' .. i) end`
  return {
    client: new RedisStore({ client: one }),
    url: server.url,
    async copy(copies) {
      for (let i = 1; i <= copies; i += 10_000) await one.eval(copied, 0, i, Math.min(copies, i + 9_999))
    },
    async close() {
      one.disconnect()
      await server.close()
    },
  }
}

async function onPostgres(): Promise<Ground> {
  const server = await startPostgres({ fsync: 'on' })
  const pool = new Pool({ connectionString: server.url(), max: 4 })
  const client = new PostgresStore({ pool, sweeps: false })
  await client.migrate()
  const kept = 'format, revision, state, token, fingerprint, attempt, uncertain, expires_at, status, head, body'
  return {
    client,
    url: server.url(),
    copy: async (copies) => {
      await pool.query(
        `INSERT INTO once_per_key.records (id, name, ${kept}) SELECT sha256(convert_to('acme:' || i, 'UTF8')), 'acme:' || i, ${kept}
         FROM once_per_key.records, generate_series(1, ${copies}) i WHERE name = 'acme:0'`,
      )
      await pool.query('VACUUM (ANALYZE) once_per_key.records')
      await pool.query('CHECKPOINT')
    },
    async close() {
      await pool.end()
      await server.close()
    },
  }
}

/** Claims and completes, one after the other with a pause, until told; resolves with the milliseconds of each pair. */
async function paysUntil(store: Store, name: string, isOver: () => boolean): Promise<number[]> {
  const took: number[] = []
  while (!isOver()) {
    const key = `${name}:${took.length}`
    const from = performance.now()
    await store.begin(key, { ...OWN, leaseMs: 30_000, unknownOutcome: 'rerun' })
    await store.complete(key, { ...OWN, answer: ANSWER })
    took.push(performance.now() - from)
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
  return took
}

function told(took: readonly number[]): string {
  const sorted = took.toSorted((a, b) => a - b)
  const at = (part: number) =>
    (sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] as number).toFixed(1)
  return `median ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms (${sorted.length} payments)`
}

/** How many the command finds, in a process of its own. */
async function unknownAt(name: string, url: string): Promise<number> {
  const args = ['dist/bin/once-per-key.js', 'unknown', '--json', `--${name.toLowerCase()}`, url]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const [said] = await Promise.all([text(child.stdout), once(child, 'close')])
  return JSON.parse(said).total
}

async function measure(name: string, { client, url, copy, close }: Ground): Promise<void> {
  try {
    await client.complete('acme:0', { ...OWN, answer: ANSWER })
    await copy(RECORDS)
    const lost = { ...OWN, uncertain: true, failedMs: 1 }
    for (let i = 0; i < UNKNOWN; i++) await client.release(`acme:lost-${i}`, lost)
    const until = performance.now() + ALONE_MS
    const alone = await paysUntil(client, 'alone', () => performance.now() > until)

    let isOver = false
    const beside = paysUntil(client, 'beside', () => isOver)
    const from = performance.now()
    const found = await unknownAt(name, url)
    const seconds = (performance.now() - from) / 1_000
    isOver = true
    if (found !== UNKNOWN) throw new Error(`${found} of ${UNKNOWN} were found.`)
    console.log(`${name}, ${RECORDS} records: \`once-per-key unknown\` takes ${seconds.toFixed(1)} s`)
    console.log(`  a client alone:           ${told(alone)}`)
    console.log(`  the same beside it:       ${told(await beside)}`)
  } finally {
    await close()
  }
}

await measure('Redis', await onRedis())
await measure('Postgres', await onPostgres())
