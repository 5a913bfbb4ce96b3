import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { build } from 'tsup'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.js'
import { gate } from '../support/gate.js'
import { type PostgresServer, startPostgres } from '../support/postgres-server.js'
import { freePort } from '../support/redis-server.js'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const INSERT = 1
const UPDATE = 2

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const RECIPE = join(ROOT, 'examples/recipes/transactions/reserve-call-record.ts')

interface Point {
  /** Where the owner is killed (-9). */
  readonly killed: string
  readonly kill: (owner: Owner) => Promise<unknown>
  /** What the books say then, and how many transfers the bank has made. */
  readonly books: string
  readonly transfers: number
}

const POINTS: readonly Point[] = [
  { killed: 'while it reserves, before the COMMIT', kill: atDoor(INSERT), books: 'nothing', transfers: 0 },
  { killed: 'before the call reaches the bank', kill: atBank('before'), books: 'reserved', transfers: 0 },
  { killed: 'when the bank has paid, before its answer', kill: atBank('behind'), books: 'reserved', transfers: 1 },
  { killed: 'while it records, before the COMMIT', kill: atDoor(UPDATE), books: 'reserved', transfers: 1 },
  { killed: 'after the COMMIT, before its answer', kill: behindCommit, books: 'paid', transfers: 1 },
]

interface Owner {
  readonly port: number
  kill(): Promise<void>
}

interface Bank {
  readonly port: number
  /** By the key of the call. */
  readonly transfers: Map<string, string>
  /** Says, once, that it was called: before the transfer, behind it, or behind it and answering. Else it does not answer. */
  strike: { readonly when: 'before' | 'behind' | 'answering'; readonly hit: () => void } | undefined
  close(): void
}

let database: PostgresServer
let operator: Client
let folder: string
let proxy: FaultProxy
let bank: Bank
const owners = new Set<Owner>()

beforeAll(async () => {
  database = await startPostgres()
  proxy = await startFaultProxy(database.port)
  operator = new Client({ connectionString: database.url() })
  await operator.connect()
  folder = await mkdtemp(join(tmpdir(), 'once-per-key-recipe-'))
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction')
  await build({
    entry: { recipe: RECIPE },
    outDir: folder,
    outExtension: () => ({ js: '.mjs' }),
    format: 'esm',
    target: 'node20',
    external: ['express', 'pg'],
    noExternal: [/^once-per-key/],
    esbuildOptions(options) {
      options.alias = {
        'once-per-key': join(ROOT, 'src/index.ts'),
        'once-per-key/postgres': join(ROOT, 'adapters/postgres/index.ts'),
      }
    },
    config: false,
    silent: true,
    clean: false,
  })
  await (await start()).kill()
  // A door in the books, so that a process can be killed while a statement of it waits there.
  await operator.query(`
    CREATE FUNCTION wait_at_door() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_advisory_xact_lock_shared(CASE TG_OP WHEN 'INSERT' THEN 1 ELSE 2 END); RETURN NEW; END $$;
    CREATE TRIGGER door BEFORE INSERT OR UPDATE ON payouts FOR EACH ROW EXECUTE FUNCTION wait_at_door()`)
})

afterAll(async () => {
  for (const owner of owners) await owner.kill()
  await operator.end()
  await proxy.close()
  await database.close()
  await rm(folder, { recursive: true, force: true })
})

beforeEach(async () => {
  proxy.disarm()
  await operator.query('TRUNCATE payouts, once_per_key.records')
  bank = await openBank()
  return () => bank.close()
})

async function start(): Promise<Owner> {
  const port = await freePort()
  const { NODE_OPTIONS: _, NODE_V8_COVERAGE: __, ...env } = process.env
  const child: ChildProcess = spawn(process.execPath, [join(folder, 'recipe.mjs')], {
    env: {
      ...env,
      PORT: `${port}`,
      DATABASE_URL: database.url().replace(`:${database.port}`, `:${proxy.port}`),
      BANK_URL: `http://127.0.0.1:${bank?.port ?? 0}`,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  await once(child.stdout as NodeJS.ReadableStream, 'data')
  const owner = {
    port,
    async kill() {
      owners.delete(owner)
      child.kill('SIGKILL')
      await exited
    },
  }
  owners.add(owner)
  return owner
}

/** A stand-in for a bank that carries a transfer out once for each key. */
async function openBank(): Promise<Bank> {
  const transfers = new Map<string, string>()
  const server = createServer((req, res) => {
    const key = String(req.headers['idempotency-key'])
    const { strike } = opened
    opened.strike = undefined
    if (strike?.when === 'before') return strike.hit()
    if (!transfers.has(key)) transfers.set(key, `transfer-${transfers.size + 1}`)
    if (strike?.when === 'behind') return strike.hit()
    strike?.hit()
    res.setHeader('Content-Type', 'application/json')
    res.end(JSON.stringify({ transfer: transfers.get(key) }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const opened: Bank = {
    port: (server.address() as AddressInfo).port,
    transfers,
    strike: undefined,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
  return opened
}

// --- the points

function atBank(when: 'before' | 'behind'): Point['kill'] {
  return async (owner) => {
    const called = gate()
    bank.strike = { when, hit: called.open }
    const attempt = pay(owner)
    await called.opened
    await Promise.all([owner.kill(), attempt])
  }
}

/** Closes the door in the books, and kills the owner while its statement waits there. */
function atDoor(door: number): Point['kill'] {
  return async (owner) => {
    await operator.query('SELECT pg_advisory_lock($1)', [door])
    const attempt = pay(owner)
    await vi.waitUntil(async () => {
      const { rowCount } = await operator.query("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
      return rowCount === 1
    })
    await Promise.all([owner.kill(), attempt])
    await operator.query('SELECT pg_advisory_unlock($1)', [door])
  }
}

/** The reply to the COMMIT is lost, and so is the way to ask what became of it. */
async function behindCommit(owner: Owner): Promise<void> {
  const committed = gate()
  // By then the COMMIT of the reservation is over.
  const hit = () => void proxy.dropReplyTo('COMMIT').then(proxy.cut).then(committed.open)
  bank.strike = { when: 'answering', hit }
  const attempt = pay(owner)
  await committed.opened
  await Promise.all([owner.kill(), attempt])
  proxy.heal()
}

// --- what is seen

/** Its status; `null`: the owner died. */
async function pay({ port }: Owner): Promise<number | null> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/payouts`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'order-1001' },
      body: '{"amount":100}',
    })
    return response.status
  } catch {
    return null
  }
}

async function books(): Promise<string> {
  // A backend finds out that its client has died when it next looks.
  await vi.waitUntil(async () => {
    const { rowCount } = await operator.query(
      "SELECT FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
    )
    return rowCount === 0
  })
  const { rows } = await operator.query('SELECT transfer FROM payouts')
  if (rows.length > 1) return `${rows.length} rows`
  return rows.length === 0 ? 'nothing' : rows[0].transfer === null ? 'reserved' : 'paid'
}

/** Ends the lease of the dead owner, as if its time had passed. */
async function lapse(): Promise<void> {
  await operator.query("UPDATE once_per_key.records SET lease_until = 1 WHERE state = 'in-flight'")
}

describe.each(POINTS)('an owner that is killed $killed', ({ kill, books: expected, transfers }) => {
  test(`leaves the books with: ${expected}`, async () => {
    await kill(await start())
    expect(await books()).toBe(expected)
    expect(bank.transfers.size).toBe(transfers)
  })

  test('is followed by one payment, when its client comes back', async () => {
    await kill(await start())
    await books()
    await lapse()
    const next = await start()
    const statuses = [await pay(next), await pay(next)]
    await next.kill()
    expect(statuses).toEqual([201, 201])
    expect(await books()).toBe('paid')
    expect(bank.transfers.size).toBe(1)
  })
})

test('the page about transactions has the table of this test', async () => {
  const rows = POINTS.map(({ killed, books, transfers }) => `| ${killed} | ${books} | ${transfers} |`)
  expect(await readFile(join(ROOT, 'docs/transactions.md'), 'utf8')).toContain(rows.join('\n'))
})
