import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { buildProgram } from './built-program.js'
import { DRIVER_NAMES, type DriverName } from './drivers.js'
import { type Opened, openStore } from './open-store.js'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

const program = await buildProgram('payouts-process.main.ts')
afterAll(() => program.remove())

/** How many records must have been in flight when their owners were killed. */
const FEWEST_OPEN = 8

/** Where the owner dies, and what the books say of its payout then. */
const POINTS = {
  'before the reservation': undefined,
  'inside the step': undefined,
  'behind the reservation': 'reserved',
  'inside the transaction': 'reserved',
  'before the COMMIT': 'reserved',
  'behind the COMMIT': 'paid',
} as const

describe.each(DRIVER_NAMES)('on %s', (driver) => {
  test.each(Object.entries(POINTS))(
    'an owner that is killed %s leaves one payout, and its client is answered',
    async (point, state) => {
      const opened = withBooks(driver)
      const dying = await serve(driver, opened.file, point)
      await expect(dying.pay('k')).rejects.toThrow()
      await dying.exited
      expect(books(opened)).toEqual(state === undefined ? [] : [{ key: 'k', state }])
      const record = await opened.store.inspect('single-tenant:k')
      expect(record?.state).toBe(state === 'paid' ? 'completed' : 'in-flight')

      const later = await serve(driver, opened.file, 'never')
      const { status, body, replayed } = await persisted(() => later.pay('k'))
      expect(status).toBe(201)
      expect(replayed).toBe(state === 'paid' ? 'true' : null)
      expect(opened.query('SELECT * FROM payouts').map((row) => ({ ...row }))).toEqual([
        { id: body, key: 'k', state: 'paid' },
      ])
    },
  )

  test('whenever an owner is killed, the books say paid of a key if, and only if, its record is completed', async () => {
    const opened = withBooks(driver)
    const seen = { paid: 0, open: 0 }
    // A loaded machine may see few that were open: then there are more rounds, up to a limit.
    for (let round = 0; round < 8 || (seen.open <= FEWEST_OPEN && round < 60); round++) {
      const service = await serve(driver, opened.file, 'never')
      let answered = 0
      const enough = new Promise<void>((resolve) => {
        for (let i = 0; i < 60; i++) {
          void service.pay(`${round} ${i}`).then(
            () => ++answered === 5 + 4 * (round % 8) && resolve(),
            () => {},
          )
        }
      })
      await enough
      await service.kill()
      const rows = opened.query(`
        SELECT coalesce(p.state, 'none') AS book, r.state AS record
        FROM once_per_key_records r LEFT JOIN payouts p ON r.key = 'single-tenant:' || replace(p.key, ' ', '%20')`)
      for (const { book, record } of rows) {
        expect([book === 'paid', record === 'completed']).toEqual(book === 'paid' ? [true, true] : [false, false])
        if (book === 'paid') seen.paid++
        else seen.open++
      }
    }
    // A run that killed nothing in the middle shows nothing.
    expect(seen.paid).toBeGreaterThan(40)
    expect(seen.open).toBeGreaterThan(FEWEST_OPEN)
  })
})

function withBooks(driver: DriverName): Opened {
  const opened = openStore(driver, { busyTimeoutMs: 5_000 })
  opened.database.exec('PRAGMA journal_mode = WAL')
  opened.database.exec('CREATE TABLE payouts (id TEXT PRIMARY KEY, key TEXT, state TEXT)')
  return opened
}

function books({ query }: Opened): unknown[] {
  return query('SELECT key, state FROM payouts').map((row) => ({ ...row }))
}

interface Reply {
  readonly status: number
  readonly body: string
  readonly replayed: string | null
}

async function serve(driver: DriverName, file: string, point: string) {
  const { NODE_OPTIONS: _, NODE_V8_COVERAGE: __, ...env } = process.env
  const args = ['--no-warnings', program.path, driver, file, point]
  const child: ChildProcess = spawn(process.execPath, args, { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const exited = once(child, 'exit')
  onTestFinished(() => void child.kill('SIGKILL'))
  const [port] = await Promise.race([once(child, 'message'), exited.then(() => Promise.reject(new Error('It ended.')))])
  return {
    exited,
    async pay(key: string): Promise<Reply> {
      const headers = { 'Idempotency-Key': key }
      const response = await fetch(`http://127.0.0.1:${port}/payouts`, { method: 'POST', headers })
      const replayed = response.headers.get('idempotent-replayed')
      return { status: response.status, body: await response.text(), replayed }
    },
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** As a client that obeys `Retry-After`: again while the dead owner's lease lives. */
async function persisted(pay: () => Promise<Reply>): Promise<Reply> {
  for (;;) {
    const reply = await pay()
    if (reply.status !== 409) return reply
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
